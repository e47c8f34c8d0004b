#!/usr/bin/env python3
"""Writes image_reference.json: what operations on images of bytes make of one image.

Nothing but the standard library: colors by colorsys, affine maps by inverting the product of the
matrices they are made of, interpolation and antialiasing as sums over all pixels. The operations
are those that torchvision.transforms.v2.functional documents. Results are not rounded.

    python3 image_reference.py > image_reference.json
"""

import colorsys
import json
import math

CHANNELS, HEIGHT, WIDTH = 3, 6, 8


def image():
    state = 12345
    planes = []
    for _ in range(CHANNELS):
        plane = []
        for _ in range(HEIGHT):
            line = []
            for _ in range(WIDTH):
                state = (1103515245 * state + 12345) % 2**31
                line.append(20 + (state >> 16) % 200)
            plane.append(line)
        planes.append(plane)
    return planes


def clamp(x):
    return min(max(x, 0), 255)


def each(planes, change):
    return [[[change(x) for x in line] for line in plane] for plane in planes]


def pixels(planes):
    return [(y, x, [plane[y][x] for plane in planes]) for y in range(HEIGHT) for x in range(WIDTH)]


def gray(rgb):
    return math.floor(0.2989 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2])


def by_pixel(planes, change):
    result = each(planes, lambda x: x)
    for y, x, rgb in pixels(planes):
        for channel, value in enumerate(change(rgb)):
            result[channel][y][x] = value
    return result


def blend(one, other, factor):
    return clamp(factor * one + (1 - factor) * other)


def contrast(planes, factor):
    grays = [gray(rgb) for _, _, rgb in pixels(planes)]
    mean = sum(grays) / len(grays)
    return each(planes, lambda x: blend(x, mean, factor))


def saturation(planes, factor):
    return by_pixel(planes, lambda rgb: [blend(x, gray(rgb), factor) for x in rgb])


def hue(planes, turn):
    def change(rgb):
        h, s, v = colorsys.rgb_to_hsv(*(x / 255 for x in rgb))
        return [255 * x for x in colorsys.hsv_to_rgb((h + turn) % 1, s, v)]

    return by_pixel(planes, change)


def sharpness(planes, factor):
    result = each(planes, lambda x: x)
    for plane, to in zip(planes, result):
        for y in range(1, HEIGHT - 1):
            for x in range(1, WIDTH - 1):
                around = sum(plane[y + i][x + j] for i in (-1, 0, 1) for j in (-1, 0, 1))
                smooth = round((around + 4 * plane[y][x]) / 13)
                to[y][x] = blend(plane[y][x], smooth, factor)
    return result


def autocontrast(planes):
    result = []
    for plane in planes:
        low = min(map(min, plane))
        high = max(map(max, plane))
        result.append([[(x - low) * 255 / (high - low) for x in line] for line in plane])
    return result


def equalize(planes):
    """PIL.ImageOps.equalize, of levels in steps of 16: with 256 levels six lines are too few."""
    result = []
    for plane in planes:
        values = [x for line in plane for x in line]
        counts = [values.count(level) for level in range(256)]
        step = (len(values) - [count for count in counts if count][-1]) // 255
        table, n = [], step // 2
        for level in range(256):
            table.append(min(n // step, 255) if step else level)
            n += counts[level]
        result.append([[table[x] for x in line] for line in plane])
    return result


def product(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def inverse(m):
    (a, b, c), (d, e, f), _ = m
    det = a * e - b * d
    return [
        [e / det, -b / det, (b * f - c * e) / det],
        [-d / det, a / det, (c * d - a * f) / det],
        [0, 0, 1],
    ]


def affine(planes, angle, translate, scale, shear, about, bilinear, fill):
    r = math.radians(angle)
    x, y = (math.tan(math.radians(s)) for s in shear)
    matrix = [[1, 0, translate[0] + about[0]], [0, 1, translate[1] + about[1]], [0, 0, 1]]
    for factor in (
        [[math.cos(r), -math.sin(r), 0], [math.sin(r), math.cos(r), 0], [0, 0, 1]],
        [[scale, 0, 0], [0, scale, 0], [0, 0, 1]],
        [[1, 0, 0], [-y, 1, 0], [0, 0, 1]],
        [[1, -x, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 0, -about[0]], [0, 1, -about[1]], [0, 0, 1]],
    ):
        matrix = product(matrix, factor)
    back = inverse(matrix)
    middle_x, middle_y = (WIDTH - 1) / 2, (HEIGHT - 1) / 2

    def pixel(plane, y, x):
        return plane[y][x] if 0 <= y < HEIGHT and 0 <= x < WIDTH else fill

    result = each(planes, lambda x: x)
    for i in range(HEIGHT):
        for j in range(WIDTH):
            at = [j - middle_x, i - middle_y, 1]
            u = sum(back[0][k] * at[k] for k in range(3)) + middle_x
            v = sum(back[1][k] * at[k] for k in range(3)) + middle_y
            for plane, to in zip(planes, result):
                if not bilinear:
                    to[i][j] = pixel(plane, round(v), round(u))
                    continue
                total = 0
                for y in range(math.floor(v), math.floor(v) + 2):
                    for x in range(math.floor(u), math.floor(u) + 2):
                        total += (1 - abs(v - y)) * (1 - abs(u - x)) * pixel(plane, y, x)
                to[i][j] = total
    return result


def resized(planes, box, height, width):
    top, bottom, left, right = box

    def weights(size, new_size, i):
        scale = size / new_size
        support = max(scale, 1)
        center = (i + 0.5) * scale
        return [max(0, 1 - abs(k + 0.5 - center) / support) for k in range(size)]

    result = []
    for plane in planes:
        lines = []
        for i in range(height):
            down = weights(bottom - top, height, i)
            line = []
            for j in range(width):
                across = weights(right - left, width, j)
                total = sum(
                    down[y] * across[x] * plane[top + y][left + x]
                    for y in range(bottom - top)
                    for x in range(right - left)
                )
                line.append(total / (sum(down) * sum(across)))
            lines.append(line)
        result.append(lines)
    return result


def flat(planes):
    return [round(x, 4) for plane in planes for line in plane for x in line]


def main():
    planes = image()
    few = each(planes, lambda x: x // 16 * 16)
    many = [[few[c][y % HEIGHT] * 64 for y in range(HEIGHT)] for c in range(CHANNELS)]
    turned = [30, [1, -2], 0.8, [10, -5], [0, 0]]
    sheared = [0, [0, 0], 1, [20, 0], [-WIDTH / 2, -HEIGHT / 2]]
    boxes = {"smaller": [[1, 6, 0, 7], 3, 2], "larger": [[2, 5, 1, 5], 7, 9]}
    reference = {
        "shape": [CHANNELS, HEIGHT, WIDTH],
        "image": flat(planes),
        "brightness": {"1.3": flat(each(planes, lambda x: clamp(1.3 * x))),
                       "0.4": flat(each(planes, lambda x: clamp(0.4 * x)))},
        "contrast": {f: flat(contrast(planes, float(f))) for f in ("1.8", "0.3")},
        "saturation": {f: flat(saturation(planes, float(f))) for f in ("1.7", "0.2")},
        "hue": {f: flat(hue(planes, float(f))) for f in ("0.1", "-0.4")},
        "sharpness": {f: flat(sharpness(planes, float(f))) for f in ("1.9", "0.1")},
        "posterize": {bits: flat(each(planes, lambda x: x & (256 - 2 ** (8 - int(bits)))))
                      for bits in ("4", "2")},
        "solarize": {t: flat(each(planes, lambda x: 255 - x if x >= int(t) else x))
                     for t in ("178", "60")},
        "autocontrast": flat(autocontrast(planes)),
        "equalize": {"times": 64, "step": 16, "values": [
            v for c in range(CHANNELS) for v in
            [x for line in equalize([many[c]])[0] for x in line[:WIDTH]]]},
        "affine": [
            {"angle": change[0], "translate": change[1], "scale": change[2], "shear": change[3],
             "about": change[4], "bilinear": bilinear, "fill": 77,
             "values": flat(affine(planes, *change, bilinear, 77))}
            for change in (turned, sheared) for bilinear in (False, True)],
        "resize": [{"box": box, "height": height, "width": width,
                    "values": flat(resized(planes, box, height, width))}
                   for box, height, width in boxes.values()],
    }
    print(json.dumps(reference))


main()
