"""Makes execution_trace/chakra.et.gz: the nodes of et.json.gz as Chakra's converter writes them.

It is encoded by protobuf's own library.

python tests/data/make_chakra.py tests/data/execution_trace
"""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

Field = descriptor_pb2.FieldDescriptorProto
TEXT, INT64, UINT64, BOOL, ENUM = (
    Field.TYPE_STRING,
    Field.TYPE_INT64,
    Field.TYPE_UINT64,
    Field.TYPE_BOOL,
    Field.TYPE_INT32,
)

# Field numbers: github.com/mlcommons/chakra, schema/protobuf/et_def.proto. A text is the name of a message; a list is
# repeated.
MESSAGES: dict[str, dict[str, tuple[int, Any]]] = {
    "Attribute": {
        "name": (1, TEXT),
        "int64_val": (9, INT64),
        "uint64_val": (13, UINT64),
        "bool_val": (27, BOOL),
        "string_val": (29, TEXT),
    },
    "GlobalMetadata": {"version": (1, TEXT), "attr": (2, ["Attribute"])},
    "IOInfo": {"values": (1, TEXT), "shapes": (2, TEXT), "types": (3, TEXT)},
    "Node": {
        "id": (1, UINT64),
        "name": (2, TEXT),
        "type": (3, ENUM),
        "ctrl_deps": (4, [UINT64]),
        "data_deps": (5, [UINT64]),
        "inputs": (8, "IOInfo"),
        "outputs": (9, "IOInfo"),
        "attr": (10, ["Attribute"]),
    },
}


def make_classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="et.proto", package="et", syntax="proto3")
    for message, fields in MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, (number, kind) in fields.items():
            is_list = isinstance(kind, list)
            one = kind[0] if is_list else kind
            field = made.field.add(name=name, number=number)
            field.label = Field.LABEL_REPEATED if is_list else Field.LABEL_OPTIONAL
            field.type = Field.TYPE_MESSAGE if isinstance(one, str) else one
            if isinstance(one, str):
                field.type_name = f".et.{one}"
            if name.endswith("_val"):  # one of them is written, also where it is 0
                field.oneof_index = 0
        if message == "Attribute":
            made.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"et.{name}")) for name in MESSAGES}


def framed(message: Any) -> bytes:
    body = message.SerializeToString()
    size = len(body)
    length = bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    length.append(size)
    return bytes(length) + body


def main(folder: Path) -> None:
    made = make_classes()
    trace = json.loads(gzip.decompress((folder / "et.json.gz").read_bytes()))
    attributes = [
        made["Attribute"](name="schema", string_val=trace["schema"]),
        made["Attribute"](name="pid", uint64_val=trace["pid"]),
    ]
    out = framed(made["GlobalMetadata"](version="0.0.4", attr=attributes))
    for node in trace["nodes"]:
        message = made["Node"](id=node["id"], name=node["name"], type=4, ctrl_deps=[node["ctrl_deps"]])
        for side in ("inputs", "outputs"):
            for part in ("values", "shapes", "types"):
                setattr(getattr(message, side), part, str(node[side][part]))
        for attribute in node["attrs"]:
            key = "string_val" if isinstance(attribute["value"], str) else "int64_val"
            message.attr.add(name=attribute["name"], **{key: attribute["value"]})
        message.attr.add(name="is_cpu_op", bool_val=True)
        out += framed(message)
    (folder / "chakra.et.gz").write_bytes(gzip.compress(out, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
