"""The last stages as text: parameters, report and program. The graphs of the others print
themselves."""

from __future__ import annotations

from jali._core.console import aligned, bytes_text, counted_text
from jali.ckks import Params
from jali.compiler.cost.costs import Costs
from jali.compiler.cost.keys import key_sizes
from jali.compiler.frontends.answers import Kept, kept_text
from jali.compiler.ir.folded_ops import approximation_of
from jali.compiler.layout.lowered_ops import terms_of
from jali.compiler.planning.node_costs import cost_at_level
from jali.compiler.program.report import bootstraps_of, kinds_text, stored_text
from jali.compiler.runtime.interpreter import Interpreter
from jali.program.demand import Demand
from jali.program.manifest import Manifest
from jali.program.port import Port

__all__ = ["parameters_text", "program_text", "report_text"]


def parameters_text(params: Params, demand: Demand) -> str:
    """The stage "parameters": the ring, the modulus, every level, and the keys."""
    lines = [
        "after 'parameters'",
        f"  N = 2^{params.log_n}, {params.slots} slots, word {params.word}, {params.security} bits of security",
        f"  log2 QP = {params.log_qp:.1f}: {params.q_count} primes, and {params.p_count} for keys of {params.dnum} digits",
        f"  scale 2^{params.scale_bits:.4g}, levels 0 to {params.depth}",
    ]
    if params.bootstraps:
        lines.append(
            f"  bootstraps from level {params.bootstrap_level} on, numbers up to {params.bootstrap_max_magnitude:.4g}"
        )
    sizes = key_sizes(params, demand)
    lines.append(
        f"  {counted_text(sizes.count, 'key')}: {bytes_text(sizes.sent)} in a message, {bytes_text(sizes.expanded)} in the server"
    )
    rotations = sorted(demand.rotations.items())
    if rotations:
        lines.append("  rotations: " + ", ".join(f"{s} (level {k})" for s, k in rotations))
    if demand.product:
        lines.append(f"  products from level {demand.product} down")
    if demand.bootstrap != "none":
        slots = " and ".join(str(n or params.slots) for n in demand.packings)
        lines.append(f"  keys of bootstrapping: {demand.bootstrap}, for {slots} slots")
    return "\n".join(lines)


def report_text(interpreter: Interpreter, costs: Costs) -> str:
    """The stage "report": for each node, what the plan counts for it. Program.summary measures the
    times."""
    rows = [
        ("node", "operation", "level", costs.unit, "rotations", "diagonals", "stored", "bootstraps")
    ]
    total, extra, stored = 0, interpreter.extra, interpreter.storage
    for node in interpreter.graph:
        cost = cost_at_level(costs, node) + extra.get(node.name, 0)
        total += cost
        rows.append(
            (
                node.name,
                by.name if (by := approximation_of(node)) is not None else node.op,
                str(node.level),
                f"{cost:,}",
                str(interpreter.rotations.get(node.name, 0)),
                str(sum(term.count for term in terms_of(node))),
                kinds_text(stored.get(node.name, ())),
                str(bootstraps_of(node)),
            )
        )
    lines = [f"  {line}" for line in aligned(rows)]
    more = sum(extra.values())
    for_them = f", of which {more:,} for matrices that are not resident" if more else ""
    return "\n".join(["after 'report'", *lines, f"  in all {total:,} {costs.unit}{for_them}"])


def program_text(
    manifest: Manifest, interpreter: Interpreter, precision_bits: float, answers: Kept | None = None
) -> str:
    """The stage "program": what client and server exchange, and what the server holds.

    answers: see Program.
    """
    graph, memory = interpreter.graph, interpreter.memory
    lines = ["after 'program'", f"  fingerprint {manifest.fingerprint}"]
    for kind, ports in (("input", manifest.inputs), ("output", manifest.outputs)):
        lines += [f"  {kind} {_port(port)}" for port in ports]
    lines += [] if manifest.parts is None else [f"  {text}" for text in manifest.parts.texts]
    lines.append(
        f"  {counted_text(manifest.lanes, 'example')} in a ciphertext, {counted_text(len(graph), 'operation')}"
    )
    noise = ", ".join(f"{bits:.1f}" for bits in manifest.demand.noise_bits)
    whose = "average of its numbers" if manifest.demand.restored_bits else "number with most"
    asked = "asked for" if answers is None else f"of precision{kept_text(answers)}"
    lines.append(
        f"  {precision_bits:g} bits {asked}, noise at -{noise} bits of each output's scale, of the {whose}"
    )
    lines.append(f"  matrices in at most {bytes_text(memory)}: {stored_text(interpreter.bytes_of)}")
    made = sum("made" in kinds for kinds in interpreter.storage.values())
    if made:
        lines.append(
            f"  matrices of {counted_text(made, 'operation')} do not fit, and are made from the weights at every use: give more memory="
        )
    return "\n".join(lines)


def _port(port: Port) -> str:
    shape = "x".join(map(str, port.shape)) or "1"
    return (
        f"{port.name}: {shape} from {port.low.min():.4g} to {port.high.max():.4g}, level {port.level}, "
        f"{counted_text(port.layout.ciphertexts, 'ciphertext')}: {port.layout}"
    )
