"""One module an op (with its backprop ops), or a table of a family of pointwise ops. Discovered, never listed."""
