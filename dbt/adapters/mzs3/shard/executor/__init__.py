"""What runs on executors: rows encoded into the files of a batch, and decoded."""
