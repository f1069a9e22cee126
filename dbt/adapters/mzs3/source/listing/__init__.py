"""Which objects a run ingests: those in S3's listing that the ledger does not have."""
