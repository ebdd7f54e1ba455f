"""LoadGen as the client: settings, SUT, and the worker process that one run lives in."""
