"""What a model's config says, checked."""
