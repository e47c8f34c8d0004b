#!/usr/bin/env python3
"""Writes shapes/: circles and squares, 24 x 24 pixels, a folder for each class; shapes.csv lists them beside their masks.

    apt-get install python3-pil python3-numpy; /usr/bin/python3 make_shapes.py
"""
import os
import numpy as np
from PIL import Image

here = os.path.dirname(os.path.abspath(__file__))
rng = np.random.default_rng(7)
y, x = np.mgrid[0:24, 0:24]
lines = ["image,mask,shape,size"]
for i in range(12):
    kind = ("circle", "square")[i % 2]
    r, cy, cx = rng.integers(4, 8), *rng.integers(9, 15, 2)
    inside = (y - cy) ** 2 + (x - cx) ** 2 < r * r if kind == "circle" else (abs(y - cy) < r) & (abs(x - cx) < r)
    pixels = np.where(inside[..., None], rng.integers(120, 240, 3), rng.integers(0, 90, 3)) // 8 * 8
    os.makedirs(os.path.join(here, "shapes", kind), exist_ok=True)
    os.makedirs(os.path.join(here, "shapes-masks"), exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(os.path.join(here, "shapes", kind, f"{i}.png"))
    Image.fromarray(inside.astype(np.uint8)).save(os.path.join(here, "shapes-masks", f"{i}.png"))
    lines.append(f"shapes/{kind}/{i}.png,shapes-masks/{i}.png,{kind},{r}")
open(os.path.join(here, "shapes.csv"), "w").write("\n".join(lines) + "\n")
