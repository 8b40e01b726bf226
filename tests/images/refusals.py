"""refusals.py PROGRAM MODEL FOLDER: files that ImageDecoder cannot decode are refused with a message that names the node, the input and
the rule, soon and without taking much memory.  FOLDER has the files of pictures.py."""
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import numpy as np

program, model, folder = sys.argv[1:]


def picture(name):
    with open(os.path.join(folder, name + ".img"), "rb") as f:
        return f.read()


def changed(data, at, new):
    return data[:at] + new + data[at + len(new):]


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(bytes(99)))
            + chunk(b"IEND", b""))


def jpeg_of(width, height):
    data = picture("jpeg_75_0")
    return changed(data, data.index(b"\xff\xc0") + 5, struct.pack(">HH", height, width))


def tiff_with(tag, kind, value):
    data = picture("tiff_rgb")
    at, = struct.unpack_from("<I", data, 4)
    n, = struct.unpack_from("<H", data, at)
    fields = [data[at + 2 + 12 * k:at + 14 + 12 * k] for k in range(n)] + [struct.pack("<HHII", tag, kind, 1, value)]
    fields = {struct.unpack_from("<H", f)[0]: f for f in fields}
    return changed(data, 4, struct.pack("<I", len(data))) + struct.pack("<H", len(fields)) + b"".join(fields[t] for t in sorted(fields)) + bytes(4)


def codestream(name, at, new):
    data = picture(name)
    return changed(data, data.index(b"\xff\x4f\xff\x51") + at, new)


def bmp(depth):
    return changed(picture("bmp_rgb"), 28, struct.pack("<H", depth))


jpeg = picture("jpeg_progressive")
scan = jpeg[jpeg.rindex(b"\xff\xda"):-2]
jp2 = picture("jp2_rgb")
CASES = [
    (b"", "none of the formats"),
    (b"P6", "none of the formats"),
    (b"GIF89a" + bytes(99), "none of the formats"),
    (b"P7\nWIDTH 1\nHEIGHT 1\n" + bytes(99), "none of the formats"),
    (bytes(999), "none of the formats"),
    (b"BM" + bytes(20), "BMP file: the file ends in its header"),
    (b"BM" + bytes(999), "BMP file: the old short header"),
    (bmp(16), "BMP file: 16 bits per pixel"),
    (bmp(32), "BMP file: the file ends in the image"),
    (changed(bmp(32), 18, struct.pack("<ii", 2 ** 31 - 1, -2 ** 31)), "BMP file: the file ends in the image"),
    (changed(bmp(32), 10, struct.pack("<I", 2 ** 32 - 1)), "BMP file: the file ends in the image"),
    (changed(bmp(32), 30, struct.pack("<I", 3)), "BMP file: 32 bits per pixel, compressed in the way 3"),
    (picture("bmp_rgb")[:-40], "BMP file: the header is damaged"),
    (jpeg[:-40], "JPEG file: it is damaged"),
    (jpeg[:30], "JPEG file: the header is damaged"),
    (jpeg_of(65500, 65500), "JPEG file: an image of 4290250000 pixels; at most 178956970 are decoded"),
    (jpeg_of(9000, 9000), "JPEG file: out of memory"),
    (jpeg_of(2000, 2000), "JPEG file: it is damaged"),
    (jpeg[:-2] + 600 * scan + jpeg[-2:], "JPEG file: more than 500 scans"),
    (png(65535, 65535), "PNG file: an image of 4294836225 pixels; at most"),
    (png(2 ** 31 - 1, 2 ** 31 - 1), "PNG file"),
    (png(9000, 9000), "PNG file: out of memory"),
    (png(2000, 2000), "PNG file: it is damaged"),
    (png(0, 1), "PNG file"),
    (picture("png_rgb")[:-40], "PNG file: a chunk ends too early"),
    (changed(picture("png_rgb"), 60, b"\0\0\0\0"), "PNG file: it is damaged"),
    (picture("webp_rgb")[:-40], "WebP file: it is damaged"),
    (picture("webp_rgb")[:20], "WebP file: the header is damaged"),
    (picture("tiff_rgb")[:100], "TIFF file"),
    (b"II*\0" + bytes(8), "TIFF file: the directory"),
    (b"II*\0\xff\xff\xff\xff" + bytes(8), "TIFF file: there is no directory"),
    (tiff_with(338, 3, 2), "TIFF file: colours with alpha"),
    (tiff_with(262, 3, 8), "TIFF file: colours of kind 8"),
    (tiff_with(339, 3, 3), "TIFF file: numbers other than unsigned integers"),
    (tiff_with(322, 4, 1 << 20), "TIFF file: tiles of 1048576 x 0"),
    (tiff_with(274, 4, 8), "TIFF file: orientation 8 of this type"),
    (tiff_with(256, 4, 1 << 20), "TIFF file"),
    (jp2[:-200], "JPEG 2000 file"),
    (jp2[:40], "JPEG 2000 file"),
    (codestream("jp2_rgb", 47, b"\2"), "JPEG 2000 file: components are only supported with 8 bits and of the size of the image"),
    (codestream("jp2_codestream", 42, b"\x0f"), "JPEG 2000 file: components are only supported with 8 bits"),
    (codestream("jp2_codestream", 40, b"\0\2"), "JPEG 2000 file: 2 components"),
    (codestream("jp2_codestream", 16, struct.pack(">I", 3)), "JPEG 2000 file: an image with an offset"),
    (codestream("jp2_codestream", 8, struct.pack(">II", 70000, 70000)), "JPEG 2000 file: more than 4096 tiles"),
    (codestream("jp2_rgb", 8, struct.pack(">IIIIII", 30000, 30000, 0, 0, 30000, 30000)), "JPEG 2000 file: an image of 900000000 pixels; at most"),
    (changed(jp2, jp2.index(b"colr") + 7, struct.pack(">I", 18)), "JPEG 2000 file: the colour space 18"),
    (b"P5 9 9 255\n" + bytes(80), "PNM file: the file ends in the image"),
    (b"P5 65535 65535 255\n" + bytes(80), "PNM file: an image of 65535 x 65535; at most"),
    (b"P5 99999999999999999999 1 255\n", "PNM file: a number is too large"),
    (b"P4 9 9\n" + bytes(17), "PNM file: the file ends in the image"),
    (b"P6 1 1 0\n" + bytes(80), "PNM file: the largest number is 0"),
    (b"P6 1 1 65536\n" + bytes(80), "PNM file: the largest number is 65536"),
    (b"P6 0 5 255\n" + bytes(80), "PNM file: an image of 0 x 5"),
    (b"P3 1 1 255 1 2     ", "PNM file: a number is missing"),
    (b"P2 1 1 9 10        ", "PNM file: the number 10, of which the largest is 9"),
    (b"P1 2 2 0 1 1 2     ", "PNM file: a bit is missing"),
    (b"P6 x              ", "PNM file: a number is missing"),
    (b"P6 #              ", "PNM file: a number is missing"),
]
MEMORY = 3 << 30  # of addresses; LLVM and the pools take one


def limit():
    if not os.environ.get("ONNX_XLA_SANITIZERS"):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


failed = 0
with tempfile.TemporaryDirectory() as work:
    path = os.path.join(work, "x.npy")
    for k, (data, part) in enumerate(CASES):
        np.save(path, np.frombuffer(data, np.uint8))
        start = time.monotonic()
        done = subprocess.run([program, "run", "-q", "--backend", "ref", "--max-memory", "512M", model, "--input", "x=" + path], capture_output=True,
                              text=True, preexec_fn=limit, check=False)
        took = time.monotonic() - start
        said = done.stderr.strip().splitlines()[-1:] or [""]
        if done.returncode != 1 or 'ImageDecoder that makes "y": encoded_stream \'x\'' not in said[0] or part not in said[0] or took > 20:
            print("FAIL case %d, %s: exit status %d after %.1f s: %s%s" % (k, part, done.returncode, took, done.stdout, said[0]))
            failed += 1
print("%d refusals" % (len(CASES) - failed))
sys.exit(failed > 0)
