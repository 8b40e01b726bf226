"""pictures.py FOLDER: image files of all kinds that ImageDecoder decodes, NAME.img, with the pixels that Pillow decodes, NAME.npy.

Needs Pillow; the models are written by cases.py, which needs onnx: Debian's Python has the one, .deps/python the other."""
import io
import os
import struct
import sys
import zlib

import numpy as np
from PIL import Image

rng = np.random.default_rng(3)
folder = sys.argv[1]


def photo(h, w, channels=3):
    y, x = np.mgrid[0:h, 0:w]
    waves = np.stack([128 + 100 * np.sin(x / 7 + k) + 27 * np.cos(y / 5 * (k + 1)) for k in range(channels)], -1)
    return (waves + rng.normal(0, 6, waves.shape)).clip(0, 255).astype(np.uint8)


def put(name, data, pixels=None):
    if pixels is None:
        pixels = np.array(Image.open(io.BytesIO(data)).convert("RGB"))
    with open(os.path.join(folder, name + ".img"), "wb") as f:
        f.write(data)
    np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(pixels, np.uint8))


def grey(values):
    return np.repeat(values[..., None], 3, -1)


def save(name, image, kind, **options):
    f = io.BytesIO()
    image.save(f, format=kind, **options)
    put(name, f.getvalue())


rgb = Image.fromarray(photo(37, 53))
rgba = Image.fromarray(photo(37, 53, 4), "RGBA")
light = rgb.convert("L")
palette = rgb.convert("P", palette=Image.ADAPTIVE, colors=200)
few = rgb.convert("P", palette=Image.ADAPTIVE, colors=3)
bits = rgb.convert("1")
light_alpha = Image.merge("LA", (light, rgb.split()[1]))
cmyk = rgb.convert("CMYK")
deep = (photo(37, 53, 1)[..., 0].astype(np.uint16) * 257 + 3)
turned = Image.Exif()
turned[0x112] = 6

for kind in ("bmp", "png", "tiff"):
    for name, image in (("rgb", rgb), ("grey", light), ("palette", palette), ("few", few), ("bits", bits)):
        save("%s_%s" % (kind, name), image, kind)
save("one_pixel", rgb.crop((0, 0, 1, 1)), "png")

for quality in (30, 75, 95):
    for sampling in range(3):
        save("jpeg_%d_%d" % (quality, sampling), rgb, "jpeg", quality=quality, subsampling=sampling)
save("jpeg_progressive", rgb, "jpeg", progressive=True)
save("jpeg_grey", light, "jpeg")
save("jpeg_cmyk", cmyk, "jpeg")
save("jpeg_orientation", rgb, "jpeg", exif=turned)

save("png_rgba", rgba, "png")
save("png_grey_alpha", light_alpha, "png")
save("png_palette_transparent", palette, "png", transparency=3)
save("png_rgb_transparent", rgb, "png", transparency=(10, 20, 30))
save("png_grey_transparent", light, "png", transparency=7)
save("png_bits_transparent", bits, "png", transparency=0)
save("png_orientation", rgb, "png", exif=turned)

for compression in ("tiff_lzw", "tiff_deflate", "jpeg", "packbits"):
    save("tiff_" + compression, rgb, "tiff", compression=compression)
save("tiff_group4", bits, "tiff", compression="group4")
save("tiff_grey_alpha", light_alpha, "tiff")
save("tiff_cmyk", cmyk, "tiff")
for orientation in range(1, 9):
    save("tiff_orientation_%d" % orientation, rgb, "tiff", tiffinfo={274: orientation})
save("tiff_pages", rgb, "tiff", save_all=True, append_images=[light])

for name, image, options in (("rgb", rgb, {}), ("rgba", rgba, {}), ("lossless", rgb, {"lossless": True}), ("grey", light, {}),
                             ("exact", rgba, {"lossless": True, "exact": True})):
    save("webp_" + name, image, "webp", **options)

for name, image, options in (("rgb", rgb, {}), ("grey", light, {}), ("rgba", rgba, {}), ("codestream", rgb, {"no_jp2": True}),
                             ("tiles", rgb, {"tile_size": (16, 16)}), ("separate", rgb, {"mct": 0}),
                             ("lossy", rgb, {"quality_mode": "rates", "quality_layers": [10], "irreversible": True})):
    save("jp2_" + name, image, "jpeg2000", **options)

# What Pillow does not write.


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, interlaced=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows)))
            + chunk(b"IEND", b""))


def packed(values, depth):
    """Rows of numbers of a few bits."""
    shifted = np.unpackbits(values[..., None].astype(np.uint8), axis=-1)[..., 8 - depth:].reshape(len(values), -1)
    return [r.tobytes() for r in np.packbits(shifted, axis=-1)]


for depth in (1, 2, 4):
    values = rng.integers(0, 1 << depth, (11, 13))
    put("png_grey_%d" % depth, png(13, 11, depth, 0, packed(values, depth)), grey(values * (255 // ((1 << depth) - 1))))
put("png_grey_16", png(53, 37, 16, 0, [r.astype(">u2").tobytes() for r in deep]), grey(deep >> 8))
deep_rgb = rng.integers(0, 65536, (5, 7, 3))
put("png_rgb_16", png(7, 5, 16, 2, [r.astype(">u2").tobytes() for r in deep_rgb]))
pixels = photo(21, 19)
passes = ((0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1))
interlaced = [r.tobytes() for y, dy, x, dx in passes for r in pixels[y::dy, x::dx]]
put("png_interlaced", png(19, 21, 8, 2, interlaced, 1), pixels)


def tiff(order, tags, data):
    """A file of one strip, or of what the tags say."""
    n = len(tags) + 1
    at = 8 + 2 + 12 * n + 4
    entries = sorted([*tags, (273, 4, at)])
    form = {3: "HHIHxx", 4: "HHII"}
    fields = b"".join(struct.pack(order + form[t], tag, t, 1, value) for tag, t, value in entries)
    return (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, n) + fields + bytes(4) + data


def tiff_grey(order, depth, photometric, values, more=()):
    tags = [(256, 3, values.shape[1]), (257, 3, values.shape[0]), (258, 3, depth), (259, 3, 1), (262, 3, photometric), (278, 3, values.shape[0]),
            (279, 4, values.nbytes), *more]
    return tiff(order, tags, values.tobytes())


small = rng.integers(0, 256, (6, 9), np.uint8)
for order in "<>":
    name = "little" if order == "<" else "big"
    put("tiff_grey_%s" % name, tiff_grey(order, 8, 1, small), grey(small))
    put("tiff_inverted_%s" % name, tiff_grey(order, 8, 0, small), grey(255 - small))
    put("tiff_turned_%s" % name, tiff_grey(order, 8, 1, small, [(274, 3, 8)]), grey(np.rot90(small)))
    put("tiff_grey_16_%s" % name, tiff_grey(order, 16, 1, deep.astype(order + "u2")), grey(deep >> 8))


def pnm(name, kind, size, most, data, pixels=None):
    header = b"P%d\n# a comment\n%d %d\n" % (kind, *size) + (b"" if most is None else b"%d\n" % most)
    put("pnm_" + name, header + data, pixels)


part = photo(4, 5)
for most in (1, 2, 3, 7, 15, 100, 254, 255, 256, 1000, 65535):
    numbers = (part.astype(np.uint32) * 301 % (most + 1)).astype(np.uint8 if most < 256 else ">u2")
    wanted = np.rint(numbers / most * 255)
    pnm("grey_%d" % most, 5, (5, 4), most, numbers[..., 0].tobytes(), grey(wanted[..., 0]))
    pnm("rgb_%d" % most, 6, (5, 4), most, numbers.tobytes(), wanted)
    text = b" ".join(b"%d" % x for x in numbers.ravel()) + b"\n"
    pnm("plain_%d" % most, 3, (5, 4), most, text, wanted)
pnm("plain_grey", 2, (5, 4), 255, b"#c\n".join(b"%d\n" % x for x in part[..., 0].ravel()), grey(part[..., 0]))
ink = rng.integers(0, 2, (7, 13), np.uint8)
pnm("bits", 4, (13, 7), None, b"".join(packed(ink, 1)), grey(255 * (1 - ink)))
pnm("plain_bits", 1, (13, 7), None, b"".join(b"%d" % x for x in ink.ravel()), grey(255 * (1 - ink)))
pnm("plain_spaced", 1, (13, 7), None, b"\n".join(b"%d" % x for x in ink.ravel()), grey(255 * (1 - ink)))


def bmp(name, width, height, depth, rows, colours=b""):
    at = 54 + len(colours)
    header = b"BM" + struct.pack("<IHHI", at + len(rows), 0, 0, at)
    put("bmp_" + name, header + struct.pack("<IiiHHIIiiII", 40, width, height, 1, depth, 0, len(rows), 0, 0, len(colours) // 4, 0) + colours + rows)


rows, colours = rng.integers(0, 256, 64, np.uint8).tobytes(), rng.integers(0, 256, 64, np.uint8).tobytes()
bmp("upside_down", 5, -4, 24, rows)
bmp("padded", 4, 4, 32, rows)
bmp("padded_upside_down", 4, -4, 32, rows)
bmp("padded_narrow", 1, 7, 32, rows)
save("bmp_rgba", rgba, "bmp")
bmp("palette_4", 32, 4, 4, rows, colours)
bmp("palette_1", 128, 4, 1, rows, colours[:8])
