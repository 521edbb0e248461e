"""What learners are made of.

Sparse products, heads, class statistics, k-means, the training loop, seeding.
"""
