"""Make the small input files that make_logits.py shows to the file-type model.

Every file is built from text in this module or by a standard-library writer with fixed dates,
owners and versions, so that the same bytes come out on every machine. `python samples.py DIR`
writes the files to a folder, to look at them.
"""
import io
import math
import pathlib
import sqlite3
import struct
import sys
import tarfile
import tempfile
import wave
import zipfile
import zlib

PYTHON = '''\
"""Count words in the files named on the command line."""
import collections
import sys


def count_words(path):
    counts = collections.Counter()
    with open(path, encoding="utf-8") as handle:
        for line in handle:
            counts.update(word.lower() for word in line.split())
    return counts


if __name__ == "__main__":
    for name in sys.argv[1:]:
        for word, n in count_words(name).most_common(10):
            print(f"{n:6d}  {word}")
'''

C_SOURCE = '''\
#include <stdio.h>
#include <stdlib.h>

struct node {
    int value;
    struct node *next;
};

static struct node *push(struct node *head, int value)
{
    struct node *n = malloc(sizeof *n);
    if (n == NULL) {
        perror("malloc");
        exit(EXIT_FAILURE);
    }
    n->value = value;
    n->next = head;
    return n;
}

int main(void)
{
    struct node *head = NULL;
    for (int i = 0; i < 10; i++)
        head = push(head, i * i);
    for (struct node *n = head; n != NULL; n = n->next)
        printf("%d\\n", n->value);
    return 0;
}
'''

C_HEADER = '''\
#ifndef VEC3_H
#define VEC3_H

typedef struct { float x, y, z; } vec3;

float vec3_dot(vec3 a, vec3 b);
vec3 vec3_cross(vec3 a, vec3 b);

#endif
'''

RUST = '''\
use std::collections::HashMap;
use std::io::{self, BufRead};

#[derive(Debug, Clone, PartialEq)]
struct Reading {
    sensor: String,
    celsius: f64,
}

fn parse(line: &str) -> Option<Reading> {
    let (sensor, value) = line.split_once('=')?;
    let celsius = value.trim().parse().ok()?;
    Some(Reading { sensor: sensor.trim().to_owned(), celsius })
}

fn main() {
    let mut highest: HashMap<String, f64> = HashMap::new();
    for line in io::stdin().lock().lines().flatten() {
        if let Some(r) = parse(&line) {
            let entry = highest.entry(r.sensor).or_insert(f64::MIN);
            *entry = entry.max(r.celsius);
        }
    }
    println!("{highest:?}");
}
'''

GO = '''\
package main

import (
\t"fmt"
\t"net/http"
\t"time"
)

func probe(url string, out chan<- string) {
\tstart := time.Now()
\tresp, err := http.Get(url)
\tif err != nil {
\t\tout <- fmt.Sprintf("%s: %v", url, err)
\t\treturn
\t}
\tdefer resp.Body.Close()
\tout <- fmt.Sprintf("%s: %d in %v", url, resp.StatusCode, time.Since(start))
}

func main() {
\tout := make(chan string)
\tgo probe("http://localhost:8080/health", out)
\tfmt.Println(<-out)
}
'''

JAVA = '''\
package shop;

import java.util.ArrayList;
import java.util.List;

public final class Cart {
    private final List<Item> items = new ArrayList<>();

    public void add(Item item) {
        if (item == null) {
            throw new IllegalArgumentException("item must not be null");
        }
        items.add(item);
    }

    public long totalCents() {
        return items.stream().mapToLong(Item::priceCents).sum();
    }

    @Override
    public String toString() {
        return "Cart" + items;
    }
}
'''

JAVASCRIPT = '''\
const form = document.querySelector("#search");
const list = document.getElementById("results");

async function search(term) {
  const response = await fetch(`/api/items?q=${encodeURIComponent(term)}`);
  if (!response.ok) {
    throw new Error(`search failed: ${response.status}`);
  }
  return response.json();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  search(form.elements.term.value)
    .then((items) => list.replaceChildren(...items.map((i) => new Option(i.name))))
    .catch((error) => console.error(error));
});
'''

TYPESCRIPT = '''\
export interface User {
  id: number;
  name: string;
  roles: readonly string[];
}

type Result<T> = { ok: true; value: T } | { ok: false; error: string };

export function findUser(users: User[], id: number): Result<User> {
  const value = users.find((u: User): boolean => u.id === id);
  return value ? { ok: true, value } : { ok: false, error: `no user ${id}` };
}
'''

RUBY = '''\
require "set"

class Inventory
  attr_reader :items

  def initialize
    @items = Hash.new(0)
  end

  def receive(name, count = 1)
    raise ArgumentError, "count must be positive" unless count.positive?
    @items[name] += count
  end

  def low_stock(limit: 3)
    @items.select { |_, n| n < limit }.keys.to_set
  end
end

stock = Inventory.new
%w[tea coffee tea sugar].each { |name| stock.receive(name) }
puts stock.low_stock(limit: 2).inspect
'''

JSON = '''\
{
  "name": "weather-station",
  "version": "2.1.0",
  "sensors": [
    {"id": "t1", "kind": "temperature", "unit": "C", "offset": -0.25},
    {"id": "h1", "kind": "humidity", "unit": "%", "offset": 1.5}
  ],
  "interval_seconds": 60,
  "upload": null,
  "debug": false
}
'''

HTML = '''\
<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <title>Opening hours</title>
  <link rel="stylesheet" href="style.css">
</head>
<body>
  <h1>Opening hours</h1>
  <table>
    <tr><th>Day</th><th>From</th><th>To</th></tr>
    <tr><td>Monday</td><td>9:00</td><td>17:30</td></tr>
    <tr><td>Saturday</td><td>10:00</td><td>14:00</td></tr>
  </table>
  <p>We are closed on <em>public holidays</em>. <a href="contact.html">Contact</a></p>
</body>
</html>
'''

CSS = '''\
:root { --accent: #2a6f97; }

body {
  margin: 0 auto;
  max-width: 42rem;
  font: 16px/1.5 "Georgia", serif;
  color: #222;
}

h1, h2 { color: var(--accent); border-bottom: 1px solid currentColor; }
table td { padding: 0.25em 1em; text-align: right; }
a:hover { text-decoration: none; }

@media (max-width: 600px) {
  body { padding: 0 1rem; font-size: 15px; }
}
'''

MARKDOWN = '''\
# Sourdough bread

A plain loaf that needs **two days** and very little work.

## Ingredients

- 400 g strong white flour
- 100 g whole wheat flour
- 350 g water
- 10 g salt

## Steps

1. Mix flour and water and leave them for *one hour*.
2. Add the starter and the salt, see [the starter guide](starter.md).
3. Fold every half hour, four times.

> A wetter dough is harder to shape and makes larger holes.
'''

DOCKERFILE = '''\
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc make libc6-dev
WORKDIR /src
COPY . .
RUN make

FROM debian:12-slim
COPY --from=build /src/server /usr/local/bin/server
EXPOSE 8080
USER nobody
ENTRYPOINT ["/usr/local/bin/server"]
CMD ["--port", "8080"]
'''

MAKEFILE = '''\
CC ?= cc
CFLAGS ?= -O2 -Wall -Wextra
OBJS = main.o parse.o print.o

all: calc

calc: $(OBJS)
\t$(CC) $(LDFLAGS) -o $@ $(OBJS) -lm

%.o: %.c calc.h
\t$(CC) $(CFLAGS) -c -o $@ $<

clean:
\trm -f calc $(OBJS)

.PHONY: all clean
'''

SHELL = '''\
#!/bin/sh
# Keep the last seven nightly copies of a folder.
set -eu

src=${1:?usage: backup.sh FOLDER TARGET}
dst=${2:?usage: backup.sh FOLDER TARGET}
stamp=$(date +%Y-%m-%d)

mkdir -p "$dst"
tar -czf "$dst/$stamp.tar.gz" -C "$src" .

ls -1 "$dst" | sort -r | tail -n +8 | while read -r old; do
    echo "removing $old"
    rm -f -- "$dst/$old"
done
'''

YAML = '''\
---
name: build
on:
  push:
    branches: [main]
jobs:
  test:
    runs-on: linux
    strategy:
      matrix:
        compiler: [gcc, clang]
    steps:
      - name: configure
        run: cmake -B build -DCMAKE_C_COMPILER=${{ matrix.compiler }}
      - name: test
        run: ctest --test-dir build --output-on-failure
'''

TOML = '''\
[package]
name = "reading"
version = "0.3.1"
edition = "2021"
license = "MIT"

[dependencies]
serde = { version = "1.0", features = ["derive"] }
clap = "4.5"

[profile.release]
lto = true
codegen-units = 1
'''

INI = '''\
; settings of the mail gateway
[server]
host = 0.0.0.0
port = 2525
timeout = 30

[queue]
path = /var/spool/gateway
max_size_mb = 512
retry = yes

[logging]
level = info
file = /var/log/gateway.log
'''

XML = '''\
<?xml version="1.0" encoding="UTF-8"?>
<catalog updated="2024-03-01">
  <book id="b1">
    <title>The Sea Atlas</title>
    <author>R. Okafor</author>
    <price currency="EUR">24.90</price>
  </book>
  <book id="b2">
    <title>Winter Gardens</title>
    <author>L. Haas</author>
    <price currency="EUR">18.00</price>
  </book>
</catalog>
'''

SVG = '''\
<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80" viewBox="0 0 120 80">
  <rect x="0" y="0" width="120" height="80" fill="#f4f1de"/>
  <path d="M10 70 C 40 10, 65 10, 110 70" fill="none" stroke="#3d405b" stroke-width="3"/>
  <circle cx="60" cy="27" r="5" fill="#e07a5f"/>
  <text x="60" y="76" font-size="8" text-anchor="middle">peak</text>
</svg>
'''

SQL = '''\
CREATE TABLE customers (
    id      INTEGER PRIMARY KEY,
    name    VARCHAR(80) NOT NULL,
    country CHAR(2)
);

INSERT INTO customers (id, name, country) VALUES (1, 'Ada', 'GB'), (2, 'Emmy', 'DE');

SELECT c.country, COUNT(*) AS orders, SUM(o.total) AS revenue
FROM customers AS c
LEFT JOIN orders AS o ON o.customer_id = c.id
WHERE o.placed_at >= DATE '2024-01-01'
GROUP BY c.country
HAVING COUNT(*) > 3
ORDER BY revenue DESC;
'''

SHORT = 'print("hello")\n'

LETTER = '''\
Dear Mrs Lindqvist,

thank you for your letter of last week. The two boxes arrived on Tuesday and nothing in them was
broken. I have put the smaller one in the cellar, where it is dry, and will open it when you come
to visit us in May. The children ask about you nearly every day.

It has rained here since Sunday, and the river is high. We hope for a better weekend.

With kind regards,
Tomas
'''


def table(separator):
    """A price table with the given field separator."""
    head = ["date", "item", "quantity", "unit_price", "total"]
    rows = [[f"2024-03-{day:02d}", item, str(day * 3 % 17 + 1), f"{price:.2f}",
             f"{(day * 3 % 17 + 1) * price:.2f}"]
            for day in range(1, 9) for item, price in (("tea", 3.5), ("coffee", 4.25))]
    return "".join(separator.join(row) + "\n" for row in [head] + rows)


def elf():
    """A complete x86-64 Linux program that exits with status 0: header, one segment, sections."""
    code = bytes.fromhex("b83c000000" "31ff" "0f05")  # mov eax, 60; xor edi, edi; syscall
    names = b"\0.text\0.shstrtab\0"
    base, start = 0x400000, 64 + 56
    table_at = (start + len(code) + len(names) + 7) // 8 * 8
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 2, 62, 1, base + start, 64, table_at, 0, 64, 56, 1, 64, 3, 2)
    end = start + len(code)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, end, end, 0x1000)
    sections = bytes(64)
    sections += struct.pack("<IIQQQQIIQQ", 1, 1, 6, base + start, start, len(code), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, end, len(names), 0, 0, 1, 0)
    return (head + segment + code + names).ljust(table_at, b"\0") + sections


def png():
    """A 48 by 32 RGB colour ramp."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(
            ">I", zlib.crc32(kind + body))
    rows = b"".join(b"\0" + bytes(v for x in range(48) for v in (x * 5, y * 8, (x ^ y) * 4))
                    for y in range(32))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 48, 32, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def wav():
    """An eighth of a second of a 440 Hz tone, 16-bit mono at 8 kHz."""
    out = io.BytesIO()
    with wave.open(out, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        tone = [round(9000 * math.sin(2 * math.pi * 440 * i / 8000)) for i in range(1000)]
        sound.writeframes(struct.pack(f"<{len(tone)}h", *tone))
    return out.getvalue()


def zip_archive():
    """Two text files, deflated."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in (("letter.txt", LETTER), ("prices.csv", table(","))):
            info = zipfile.ZipInfo(name, (2024, 3, 1, 12, 0, 0))
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            info.external_attr = 0o644 << 16
            archive.writestr(info, text)
    return out.getvalue()


def tar_archive():
    """The same two text files, as a ustar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, text in (("letter.txt", LETTER), ("prices.csv", table(","))):
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.uname, info.gname = len(text), 1709294400, "ann", "ann"
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def gz():
    """The price table, gzip-compressed, without a file name or a date."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    return press.compress(table(",").encode()) + press.flush()


def sqlite():
    """A database of one table with sixteen rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "shop.sqlite")
        db = sqlite3.connect(path)
        db.execute("PRAGMA page_size = 1024")
        db.execute("CREATE TABLE prices (date TEXT, item TEXT, n INTEGER, unit REAL, total REAL)")
        rows = [line.split(",") for line in table(",").splitlines()[1:]]
        db.executemany("INSERT INTO prices VALUES (?, ?, ?, ?, ?)", rows)
        db.commit()
        db.close()
        data = bytearray(path.read_bytes())
    data[96:100] = struct.pack(">I", 3040001)  # the header field that names the library version
    return bytes(data)


def pdf():
    """One page that says "Opening hours"."""
    text = b"BT /F1 24 Tf 72 720 Td (Opening hours) Tj ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    xref = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    xref += b"".join(b"%010d 00000 n \n" % at for at in offsets)
    end = b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1, len(out))
    return out + xref + end


def make_samples():
    """Return all the files as a dict of name to bytes, in a fixed order."""
    files = {
        "words.py": PYTHON, "list.c": C_SOURCE, "vec3.h": C_HEADER, "readings.rs": RUST,
        "probe.go": GO, "Cart.java": JAVA, "search.js": JAVASCRIPT, "users.ts": TYPESCRIPT,
        "inventory.rb": RUBY, "station.json": JSON, "hours.html": HTML, "style.css": CSS,
        "bread.md": MARKDOWN, "Dockerfile": DOCKERFILE, "Makefile": MAKEFILE,
        "backup.sh": SHELL, "build.yaml": YAML, "package.toml": TOML, "gateway.ini": INI,
        "catalog.xml": XML, "peak.svg": SVG, "report.sql": SQL, "prices.csv": table(","),
        "prices.tsv": table("\t"), "letter.txt": LETTER, "short.txt": SHORT, "exit.elf": elf(),
        "ramp.png": png(), "tone.wav": wav(), "box.zip": zip_archive(),
        "box.tar": tar_archive(), "prices.csv.gz": gz(), "shop.sqlite": sqlite(),
        "hours.pdf": pdf(),
    }
    return {name: data.encode() if isinstance(data, str) else data
            for name, data in files.items()}


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "samples")
    target.mkdir(parents=True, exist_ok=True)
    for file_name, content in make_samples().items():
        (target / file_name).write_bytes(content)
