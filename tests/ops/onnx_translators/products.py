"""Conv, ConvTranspose, Gemm, MatMul. ONNX has NCHW images and OIHW (ConvTranspose: IOHW) filters."""

from __future__ import annotations

from typing import Any

import numpy as np

from onnx_translators import Node, Unsupported, translate


@translate("MatMul")
def matmul(node: Node, a: Any, b: Any) -> Any:
    if a.dtype.kind != "f":
        raise Unsupported("products of integers")
    if a.ndim == b.ndim == 2:
        return node.emit("MatMul", a, b)
    x = a[None, :] if a.ndim == 1 else a
    y = b[:, None] if b.ndim == 1 else b
    z = node.emit("BatchMatMul", x, y)
    if a.ndim == 1:
        z = z[..., 0, :]
    return z[..., 0] if b.ndim == 1 else z


@translate("Gemm")
def gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    alpha, beta = np.float32(node.attr("alpha", 1.0)), np.float32(node.attr("beta", 1.0))
    attrs = {"transpose_a": bool(node.attr("transA", 0)), "transpose_b": bool(node.attr("transB", 0))}
    if c is not None and c.ndim == 1 and alpha == beta == 1 and c.size == b.shape[0 if attrs["transpose_b"] else 1]:
        return node.emit("MatMul", a, b, c, **attrs)
    y = alpha * node.emit("MatMul", a, b, **attrs)
    return y if c is None else y + beta * c


def windows(node: Node, kernel: tuple[int, ...]) -> dict[str, Any]:
    if len(kernel) != 2:
        raise Unsupported("convolutions of other ranks than two")
    top, left, bottom, right = node.attr("pads", [0, 0, 0, 0])
    attrs: dict[str, Any] = {
        "strides": tuple(node.attr("strides", [1, 1])),
        "dilations": tuple(node.attr("dilations", [1, 1])),
        "padding": "EXPLICIT",
        "pads": ((top, bottom), (left, right)),
    }
    auto = node.attr("auto_pad", "NOTSET")
    if auto == "SAME_LOWER":
        raise Unsupported("SAME with the odd zero before; rillet has EXPLICIT for it")
    if auto != "NOTSET":
        attrs |= {"padding": {"SAME_UPPER": "SAME", "VALID": "VALID"}[auto], "pads": ((0, 0), (0, 0))}
    return attrs


def nhwc(x: Any) -> Any:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1))


def nchw(y: Any) -> Any:
    return y.transpose(0, 3, 1, 2)


@translate("Conv")
def conv(node: Node, x: Any, w: Any, bias: Any = None) -> Any:
    attrs, groups = windows(node, w.shape[2:]), node.attr("group", 1)
    kernel = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    return nchw(node.emit("Conv2D", nhwc(x), kernel, bias, groups=groups, **attrs))


@translate("ConvTranspose")
def conv_transpose(node: Node, x: Any, w: Any, bias: Any = None) -> Any:
    attrs = windows(node, w.shape[2:])
    extra = tuple(node.attr("output_padding", [0, 0]))
    if attrs["padding"] == "VALID":
        attrs["padding"] = "EXPLICIT"
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], attrs["dilations"])]
    if (size := node.attr("output_shape")) is not None:
        total = [(n - 1) * s + r + e - o
                 for n, s, r, e, o in zip(x.shape[2:], attrs["strides"], reach, extra, size)]  # fmt: skip
        if min(total) < 0:
            extra = tuple(e + max(-t, 0) for e, t in zip(extra, total))
            total = [max(t, 0) for t in total]
        attrs |= {"padding": "EXPLICIT", "pads": tuple((t // 2, t - t // 2) for t in total)}
    kernel = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    return nchw(node.emit("Conv2DTranspose", nhwc(x), kernel, bias, groups=node.attr("group", 1),
                          output_padding=extra, **attrs))  # fmt: skip
