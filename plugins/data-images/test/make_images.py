#!/usr/bin/env python3
"""Writes data/: small images in every form that decoders meet, and what Pillow 9.4 (Debian 12) makes of them.

    apt-get install python3-pil python3-numpy; /usr/bin/python3 make_images.py

expected.txt has a line for each case: name, file, mode, fit, height, width, and the CRC-32 of the planes
(channels, height, width) that Pillow gives. For JPEG the decoder is libjpeg-turbo on both sides.
"""
import io, os, struct, zlib
import numpy as np
from PIL import Image, ImageOps, PngImagePlugin

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
os.makedirs(here, exist_ok=True)
rng = np.random.default_rng(42)


def scene(h, w, channels=3):
    """Smooth with an edge and some noise."""
    y, x = np.mgrid[0:h, 0:w]
    planes = [127 + 90 * np.sin(x / (3.0 + c) + c) * np.cos(y / (4.0 + c)) + 40 * (x > w // 2) for c in range(channels)]
    noise = rng.normal(0, 6, (h, w, channels))
    return np.clip(np.stack(planes, -1) + noise, 0, 255).astype(np.uint8)


def save(name, image, **options):
    image.save(os.path.join(here, name), **options)


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def write_png(name, width, height, depth, color, rows, interlace=0, extra=b""):
    """A PNG by hand, for forms that Pillow does not write."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    data = (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + extra + png_chunk(b"IDAT", zlib.compress(rows)) + png_chunk(b"IEND", b""))
    open(os.path.join(here, name), "wb").write(data)


def interlaced(pixels):
    """Adam7 of an array [h, w, bytes]: the passes' rows, each behind its filter byte."""
    out = b""
    for y0, x0, dy, dx in [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]:
        part = pixels[y0::dy, x0::dx]
        if part.size:
            out += b"".join(b"\0" + row.tobytes() for row in part)
    return out


rgb = Image.fromarray(scene(23, 31))
save("rgb.png", rgb)
save("gray.png", rgb.convert("L"))
save("bits1.png", rgb.convert("1"))
save("palette.png", rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=13))
alpha = Image.fromarray(np.concatenate([scene(23, 31), scene(23, 31, 1)], -1), "RGBA")
save("rgba.png", alpha)
save("gray_alpha.png", alpha.convert("LA"))
transparent = rgb.convert("P", palette=Image.Palette.ADAPTIVE, colors=7)
save("palette_alpha.png", transparent, transparency=3)
wide16 = np.clip(scene(23, 31).astype(np.int64) * 257 + rng.integers(-100, 100, (23, 31, 3)), 0, 65535)
rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in wide16)
write_png("rgb16.png", 31, 23, 16, 2, rows)
write_png("interlaced.png", 31, 23, 8, 2, interlaced(np.asarray(rgb)), interlace=1)
write_png("gray2.png", 8, 4, 2, 0, b"".join(b"\0" + bytes([0b00011011, 0b11100100 ^ (85 * y & 255)]) for y in range(4)))

photo = Image.fromarray(scene(120, 200))
save("photo.jpg", photo, quality=85)
save("progressive.jpg", photo.resize((90, 70)), quality=80, progressive=True)
save("gray.jpg", photo.resize((50, 40)).convert("L"), quality=90)
save("full.jpg", photo.resize((51, 37)), quality=95, subsampling=0)
save("cmyk.jpg", photo.resize((48, 32)).convert("CMYK"), quality=90)
for orientation in range(1, 9):
    exif = Image.Exif()
    exif[0x0112] = orientation
    save(f"turned{orientation}.jpg", rgb, quality=92, exif=exif)
save("lossless.webp", rgb, lossless=True)
save("lossless_alpha.webp", alpha, lossless=True, exact=True)
save("lossy.webp", photo.resize((64, 48)), quality=80)
exif = Image.Exif()
exif[0x0112] = 6
save("turned.webp", rgb, lossless=True, exif=exif)
save("animated.webp", rgb, save_all=True, append_images=[rgb.rotate(180)], lossless=True)

# Broken in one way each.
content = open(os.path.join(here, "rgb.png"), "rb").read()
open(os.path.join(here, "truncated.png"), "wb").write(content[: len(content) // 2])
damaged = bytearray(content)
damaged[len(content) // 2] ^= 0x55
open(os.path.join(here, "damaged.png"), "wb").write(damaged)
content = open(os.path.join(here, "photo.jpg"), "rb").read()
open(os.path.join(here, "truncated.jpg"), "wb").write(content[: len(content) // 2])
content = open(os.path.join(here, "lossy.webp"), "rb").read()
open(os.path.join(here, "truncated.webp"), "wb").write(content[: len(content) // 2])
open(os.path.join(here, "empty.png"), "wb").close()
open(os.path.join(here, "text.png"), "w").write("no image\n")
write_png("bomb.png", 60000, 60000, 8, 2, b"\0" * 1000)

# Masks: indices of a palette, gray values.
labels = (np.add.outer(np.arange(23) // 8, np.arange(31) // 16)).astype(np.uint8)
mask = Image.fromarray(labels, "P")
mask.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255])
save("mask_palette.png", mask, bits=2)
gray_mask = labels.copy()
gray_mask[0, :] = 255
save("mask_gray.png", Image.fromarray(gray_mask, "L"))


def upright(name):
    image = Image.open(os.path.join(here, name))
    return ImageOps.exif_transpose(image)


def converted(image, mode):
    if image.mode == "P" and mode == "RGB":
        return image.convert("RGBA").convert("RGB") if "transparency" in image.info else image.convert("RGB")
    if mode == "RGBA" and image.mode == "1":
        image = image.convert("L")
    if mode == "L" and image.mode in ("P", "CMYK"):
        image = image.convert("RGB")
    return image.convert(mode)


def placed(image, fit, height, width):
    w, h = image.size
    if height == 0:
        return image
    if fit == "stretch":
        return image.resize((width, height), Image.Resampling.BILINEAR)
    if fit == "pad":
        return ImageOps.pad(image, (width, height), Image.Resampling.BILINEAR, color=0)
    # torchvision's Resize and CenterCrop, for a size that need not be square.
    scaled = (width, width * h // w) if width * h >= height * w else (height * w // h, height)
    image = image.resize(scaled, Image.Resampling.BILINEAR)
    left, top = int(round((scaled[0] - width) / 2.0)), int(round((scaled[1] - height) / 2.0))
    return image.crop((left, top, left + width, top + height))


cases = []
for name in ["rgb.png", "gray.png", "bits1.png", "palette.png", "rgba.png", "gray_alpha.png", "palette_alpha.png", "interlaced.png",
             "gray2.png", "photo.jpg", "progressive.jpg", "gray.jpg", "full.jpg", "cmyk.jpg", "lossless.webp",
             "lossless_alpha.webp", "lossy.webp", "turned.webp"] + [f"turned{i}.jpg" for i in range(1, 9)]:
    for mode in ["rgb", "gray"]:
        cases.append((name, mode, "crop", 0, 0))
cases += [("rgba.png", "rgba", "crop", 0, 0), ("gray_alpha.png", "rgba", "crop", 0, 0), ("rgb.png", "rgba", "crop", 0, 0),
          ("lossless_alpha.webp", "rgba", "crop", 0, 0)]
for name in ["photo.jpg", "rgb.png", "gray.png", "turned6.jpg", "cmyk.jpg"]:
    for fit in ["crop", "stretch", "pad"]:
        for height, width in [(32, 32), (17, 40), (50, 9), (140, 233)]:
            cases.append((name, "rgb", fit, height, width))
for fit in ["crop", "stretch"]:
    cases.append(("rgba.png", "rgba", fit, 12, 15))

with open(os.path.join(here, "expected.txt"), "w") as out:
    for name, mode, fit, height, width in cases:
        image = placed(converted(upright(name), {"rgb": "RGB", "gray": "L", "rgba": "RGBA"}[mode]), fit, height, width)
        planes = np.asarray(image)
        planes = planes[None] if planes.ndim == 2 else planes.transpose(2, 0, 1)
        checksum = zlib.crc32(np.ascontiguousarray(planes).tobytes())
        out.write(f"{name} {mode} {fit} {height} {width} {planes.shape[1]} {planes.shape[2]} {checksum:08x}\n")
    for name in ["mask_palette.png", "mask_gray.png"]:
        for height, width in [(0, 0), (10, 10), (40, 64)]:
            image = Image.open(os.path.join(here, name))
            if height:
                image = image.resize((width, height), Image.Resampling.NEAREST)
            planes = np.asarray(image)[None]
            checksum = zlib.crc32(np.ascontiguousarray(planes).tobytes())
            out.write(f"{name} mask stretch {height} {width} {planes.shape[1]} {planes.shape[2]} {checksum:08x}\n")
# Pillow clips 16 bits of color by dropping the lower ones; libpng rounds: (v * 255 + 32895) >> 16.
rounded = (wide16.astype(np.int64) * 255 + 32895) >> 16
planes = np.ascontiguousarray(rounded.astype(np.uint8).transpose(2, 0, 1))
with open(os.path.join(here, "expected.txt"), "a") as out:
    out.write(f"rgb16.png rgb crop 0 0 23 31 {zlib.crc32(planes.tobytes()):08x}\n")
