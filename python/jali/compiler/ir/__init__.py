"""The compiler's graphs: nodes, operations, the linear maps between arrays, and what a graph
computes in the clear."""
