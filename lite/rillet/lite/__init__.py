"""The runtime a device needs: read, check and run .rlt models. Imports NumPy and flatbuffers only."""

from rillet.lite.engine import Context, Model
from rillet.lite.library import LibraryMissing
from rillet.lite.status import ModelError, Status
from rillet.lite.writer import save_model, write_model

__all__ = ["Context", "LibraryMissing", "Model", "ModelError", "Status", "save_model", "write_model"]
