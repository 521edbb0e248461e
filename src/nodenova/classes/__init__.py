"""What is in each class, and a person's verdict on it: names, merged, split and rejected classes."""
