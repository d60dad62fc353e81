"""The runtime a device needs: read, check and run .rlt models. Imports NumPy and flatbuffers only."""

from rillet.lite.engine import Context, Memory, Model, OpTime, TensorInfo
from rillet.lite.interpreter import Interpreter
from rillet.lite.library import LibraryMissing
from rillet.lite.reader import ModelFile, read_file, read_model
from rillet.lite.status import ModelError, Status
from rillet.lite.writer import save_model, write_model

__all__ = [
    "Context",
    "Interpreter",
    "LibraryMissing",
    "Memory",
    "Model",
    "ModelError",
    "ModelFile",
    "OpTime",
    "Status",
    "TensorInfo",
    "read_file",
    "read_model",
    "save_model",
    "write_model",
]
