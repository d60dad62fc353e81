"""Records of the ops that read and update variables. They train; none of them is exportable.

A variable's handle is an input that the op names in `updates`: the reference returns the new value after the outputs,
the native kernel writes through the handle.
"""
