"""Reading the options of models and sources, every problem at once."""
