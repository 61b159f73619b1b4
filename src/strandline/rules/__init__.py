"""What is allowed: pure functions, total over their inputs, without clock or I/O."""
