#!/bin/sh
# Prints the packed and encoded texts of byte_source_test.cpp: written by gzip, zstd, Python and
# iconv, shown by xxd.
show() { printf '%-12s' "$1"; xxd -p | tr -d '\n'; echo; }
first() { printf 'a,y\n1,2\n'; }
second() { printf '3,4\n'; }
first | gzip -n | show gzip
{ first | gzip -n; second | gzip -n; } | show members
{ first | zstd -q; second | zstd -q; } | show frames
# BGZF as bgzip writes it: members that name their length, an empty one at the end.
python3 -c '
import struct, sys, zlib
def block(text):
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    body = packer.compress(text) + packer.flush()
    head = struct.pack("<4BI2BH2sHH", 31, 139, 8, 4, 0, 0, 255, 6, b"BC", 2, len(body) + 25)
    return head + body + struct.pack("<2I", zlib.crc32(text), len(text))
sys.stdout.buffer.write(block(b"a,y\n1,2\n") + block(b"3,4\n") + block(b""))' | show bgzf
printf 'n,\303\244\n\342\202\254,\360\237\230\200\n' >/tmp/treadle-encodings
for encoding in UTF-16 UTF-16BE UTF-32 GB18030; do
  iconv -f UTF-8 -t $encoding </tmp/treadle-encodings | show $encoding
done
rm /tmp/treadle-encodings
printf 'n,\303\244\n\342\202\254,1\n' | iconv -f UTF-8 -t WINDOWS-1252 | show windows-1252
printf 'n,\346\227\245\n' | iconv -f UTF-8 -t ISO-2022-JP | show iso-2022-jp
