"""From a trained graph to a model file, and the proof that the file computes the same."""

from __future__ import annotations

from rillet.export.metadata import ExportError
from rillet.export.pipeline import ExportReport, export
from rillet.export.verify import Difference, Verification, verify

__all__ = ["Difference", "ExportError", "ExportReport", "Verification", "export", "verify"]
