"""Who measures: the clients that drive an engine and keep what came of it."""
