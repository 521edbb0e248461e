"""What learners are made of: sparse products, heads, class statistics, k-means, training."""
