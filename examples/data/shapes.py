#!/usr/bin/env python3
"""Writes shapes.npy, shape-kinds.npy and shape-masks.npy: colored discs and squares on noise.

    cd examples/data && python3 shapes.py
"""

import random
import struct

ROWS, SIZE = 48, 12


def save(path, kind, shape, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(bytes(values))


def main():
    draw = random.Random(7)
    images, kinds, masks = [], [], []
    for row in range(ROWS):
        is_disc = row % 2
        radius = draw.uniform(2.5, 4)
        y, x = (draw.uniform(radius, SIZE - 1 - radius) for _ in range(2))
        color = [draw.randint(120, 255) for _ in range(3)]
        inside = [
            ((i - y) ** 2 + (j - x) ** 2 <= radius**2)
            if is_disc
            else max(abs(i - y), abs(j - x)) <= radius
            for i in range(SIZE)
            for j in range(SIZE)
        ]
        for channel in range(3):
            images += [color[channel] if here else draw.randint(0, 90) for here in inside]
        kinds.append(is_disc)
        masks += map(int, inside)
    save("shapes.npy", "|u1", (ROWS, 3, SIZE, SIZE), images)
    save("shape-kinds.npy", "|u1", (ROWS,), kinds)
    save("shape-masks.npy", "|u1", (ROWS, SIZE, SIZE), masks)


main()
