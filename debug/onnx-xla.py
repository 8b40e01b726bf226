"""onnx-xla.py: pretty-printers for gdb.

  gdb -x debug/onnx-xla.py --args build/onnx-xla run model.onnx

A shape prints as f32[2,?1], where ?1 is a symbolic dimension, the first entry of the module's dim_table.  An instruction, or a
pointer to one, prints as a line of HLO text with its number, which it gets when the module is printed or verified.  A value prints
as %4, or as %4.1 if it is the second result of its instruction, and a status as "ok" or as its code and message.  p/r prints the
bare structures."""
import gdb

SHAPE_KINDS = ["", "sequence of ", "optional ", "map of ", "unranked "]
STATUS_ABOUT = 8  # the number of the first bit of a status code that belongs to its subject (base/status.h)
MAX_OPERANDS = 16  # the largest number of operands that is printed, since an instruction may be damaged


def enumerator(value, type_name, prefix):
    """Returns the name of an enumeration constant in lower case, without its prefix."""
    text = str(value.cast(gdb.lookup_type(type_name)))
    return text[len(prefix):].lower() if text.startswith(prefix) else text


def shape_text(shape):
    rank = min(int(shape["rank"]), 16)
    dims = [int(shape["dims"][k]) for k in range(rank)]
    kind = int(shape["kind"])
    kind = SHAPE_KINDS[kind] if kind < len(SHAPE_KINDS) else f"kind {kind} of "
    dims = ",".join(f"?{-d}" if d < 0 else str(d) for d in dims)
    return f"{kind}{enumerator(shape['type'], 'dtype', 'DTYPE_')}[{dims}]"


def value_text(value):
    if not value["def"]:
        return "no value"
    instr = value["def"].dereference()
    index = int(value["index"])
    return f"%{int(instr['id'])}.{index}" if int(instr["n_results"]) > 1 else f"%{int(instr['id'])}"


def instr_text(instr):
    n, n_results = int(instr["n_operands"]), int(instr["n_results"])
    operands = [value_text(instr["operands"][k]) for k in range(min(n, MAX_OPERANDS))]
    operands += ["..."] if n > MAX_OPERANDS else []
    shapes = [shape_text(instr["shapes"][k]) for k in range(min(n_results, MAX_OPERANDS))]
    op = enumerator(instr["op"], "hlo_op", "HLO_").replace("_", "-")
    source = instr["source"].string() if instr["source"] else ""
    note = f' @"{source}"' if source else ""
    return f"%{int(instr['id'])} = {op}({', '.join(operands)}) : {', '.join(shapes)}{note}"


def status_text(status):
    if not status:
        return "ok"
    try:
        record = status.cast(gdb.lookup_type("struct status_record").pointer()).dereference()
    except gdb.error:
        return f"an error at {int(status):#x}"
    return f"{enumerator(record['code'] % (1 << STATUS_ABOUT), 'status_code', 'STATUS_')}: {record['message'].string()}"


class Text:
    def __init__(self, value, text):
        self.value, self.text = value, text

    def to_string(self):
        return self.text(self.value)


PRINTERS = {"shape": shape_text, "hlo_value": value_text, "hlo_instr": instr_text}


def printer_of(value):
    kind = value.type.unqualified()
    if kind.code == gdb.TYPE_CODE_TYPEDEF and kind.name == "status":
        return Text(value, status_text)
    kind = kind.strip_typedefs()
    if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().tag == "hlo_instr":
        return Text(value, lambda v: instr_text(v.dereference()) if v else "no instruction")
    if kind.code == gdb.TYPE_CODE_STRUCT and kind.tag in PRINTERS:
        return Text(value, PRINTERS[kind.tag])
    return None


gdb.pretty_printers.append(printer_of)
