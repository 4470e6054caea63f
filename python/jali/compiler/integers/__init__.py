"""Programs of exact integers (jali.discrete), and when jali.compile makes one of a traced graph."""
