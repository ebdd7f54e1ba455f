"""The endpoints client of mlcommons: told what to do, started, followed, and what it reports read as a run."""
