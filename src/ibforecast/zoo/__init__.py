"""What is kept: recipes by name and saved models."""
