"""Which objects a run takes: those of S3's listing that the ledger does not have."""
