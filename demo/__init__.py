"""The main job, done for real on a transcript: `make run`, `make run FILE=path`."""
