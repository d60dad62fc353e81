"""`import rillet.lite` loads NumPy and flatbuffers, and nothing else of what a device lacks."""

from __future__ import annotations

import json
import subprocess
import sys

FORBIDDEN = ["grpc", "onnx", "cupy", "google.protobuf", "typer", "rich", "tqdm", "onnxruntime", "scipy", "PIL"]
FORBIDDEN += ["rillet.train", "rillet.export", "rillet.quant"]

SCRIPT = f"""
import json
import sys
sys.path[:0] = {sys.path!r}
class Guard:
    def find_spec(self, name, path=None, target=None):
        if any(name == f or name.startswith(f + ".") for f in {FORBIDDEN!r}):
            raise AssertionError("imports " + name)
sys.meta_path.insert(0, Guard())
import numpy as np
import rillet.lite
from rillet.lite import Interpreter, read_model, write_model
from sample_models import int8_model
data = write_model(int8_model())
assert read_model(data).outputs
assert Interpreter(data)(np.zeros((1, 6, 6, 3), np.float32)).shape == (1, 4)
loaded = {{name.partition(".")[0] for name in sys.modules}} - set(sys.stdlib_module_names)
print(json.dumps(sorted(n for n in loaded if not n.startswith("_") and getattr(sys.modules.get(n), "__spec__", None))))
"""


def test_a_device_needs_numpy_and_flatbuffers_only() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(json.loads(done.stdout))
    assert {"numpy", "flatbuffers", "rillet"} <= loaded
    assert loaded <= {"numpy", "flatbuffers", "rillet", "sample_models", "sitecustomize", "usercustomize"}, loaded
