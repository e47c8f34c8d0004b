#!/usr/bin/env python3
"""Writes data/: IDX files of every type, plain and compressed, by numpy and gzip; numbers count from -2 (unsigned: 0) in
steps of 1 (floats: 0.5).

    apt-get install python3-numpy; /usr/bin/python3 make_files.py
"""
import gzip, os, struct
import numpy as np

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(here, exist_ok=True)
TYPES = {"uint8": (8, ">u1"), "int8": (9, ">i1"), "int16": (11, ">i2"), "int32": (12, ">i4"), "float32": (13, ">f4"), "float64": (14, ">f8")}


def write(name, kind, shape, values, compress=False):
    number, dtype = TYPES[kind]
    data = bytes([0, 0, number, len(shape)]) + b"".join(struct.pack(">I", n) for n in shape) + np.asarray(values).astype(dtype).tobytes()
    path = os.path.join(here, name)
    if compress:
        open(path, "wb").write(gzip.compress(data, mtime=0))
    else:
        open(path, "wb").write(data)


for kind in TYPES:
    step = 0.5 if kind.startswith("f") else 1
    write(f"{kind}.idx", kind, (6, 3), (np.arange(18) - (0 if kind == "uint8" else 2)) * step)
write("small-images-idx3-ubyte.gz", "uint8", (6, 4, 5), np.arange(120) * 2, compress=True)
write("small-labels-idx1-ubyte.gz", "uint8", (6,), [7, 3, 7, 9, 3, 3], compress=True)
write("colors-images-idx4-ubyte", "uint8", (6, 3, 4, 5), np.arange(360) % 256)
write("positions.idx", "int32", (6, 4, 5), np.arange(120) % 3)
