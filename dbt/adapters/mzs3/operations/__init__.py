"""The run-operations: arguments in, log lines or an error out."""
