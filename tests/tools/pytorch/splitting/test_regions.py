"""A graph cut into regions: where, what they read and give, which are equal."""

import pytest

from kopt.config.errors import ToolError
from kopt.tools.pytorch.contraction_work import flops_of, node_cost
from kopt.tools.pytorch.graph import Drawing, Graph, GraphInput, Node, Ref
from kopt.tools.pytorch.splitting.boundaries import by_blocks, by_parts
from kopt.tools.pytorch.splitting.regions import regions_of
from kopt.tools.pytorch.splitting.sub_problems import sub_problems_of
from support.hand_made_graphs import COLUMNS, ROWS, value_type
from support.split_graphs import SHAPES, cut_network, network, network_problem


def test_equal_blocks_are_one_part_with_the_wires_of_each() -> None:
    regions, subs = cut_network()
    assert [one.label for one in regions] == ["layers.0", "layers.1", "head"]
    assert [(one.name, one.places) for one in subs] == [
        ("net_layers_0", (0, 1)),
        ("net_head", (2,)),
    ]
    assert subs[0].wires == (
        {"x": "x", "fc_weight": "layers_0_fc_weight", "out": "add0"},
        {"x": "add0", "fc_weight": "layers_1_fc_weight", "out": "add1"},
    )
    assert subs[1].wires == ({"x": "add1", "weight": "head_weight", "out": "out"},)


def test_parts_have_the_axes_of_the_whole_and_its_rows() -> None:
    _, (block, head) = cut_network()
    assert block.sized.axes == {"B": None, "N": None}
    assert block.sized.batch == "B"
    assert head.sized.workloads == {"w0": SHAPES[0], "w1": SHAPES[1]}
    assert flops_of(block.sized.graph) == "2 * B * N * N"
    assert flops_of(head.sized.graph) == "2 * B * 3 * N"


def test_blocks_that_differ_in_one_number_are_two_parts() -> None:
    graph = network()
    changed = tuple(
        node.model_copy(update={"kwargs": {"alpha": 2}}) if node.name == "add1" else node
        for node in graph.nodes
    )
    other = graph.model_copy(update={"nodes": changed})
    subs = sub_problems_of(network_problem(), regions_of(other, by_blocks(other)))
    assert [one.name for one in subs] == ["net_layers_0", "net_layers_1", "net_head"]


def test_what_two_readers_compute_from_inputs_alone_is_copied_into_both() -> None:
    graph = network()
    turned = Node(
        name="turned",
        op="aten.t.default",
        args=(Ref(node="layers_0_fc_weight"),),
        results=(value_type(COLUMNS, COLUMNS),),
    )
    nodes = [turned]
    for node in graph.nodes:
        reads = node.name in ("mm0", "mm1")
        args = (node.args[0], Ref(node="turned"))
        nodes.append(node.model_copy(update={"args": args}) if reads else node)
    tied = graph.model_copy(
        update={"inputs": graph.inputs[:1] + graph.inputs[2:], "nodes": tuple(nodes)}
    )
    regions = regions_of(Graph.model_validate(tied.model_dump()), by_blocks(tied))
    assert ["turned" in {node.name for node in one.graph.nodes} for one in regions] == [
        *(True, True, False)
    ]
    assert {one.wires["fc_weight"] for one in regions if "fc_weight" in one.wires} == {
        "layers_0_fc_weight"
    }


def test_a_light_layer_joins_the_head_and_leaves_blocks_alike() -> None:
    graph = network()
    scale = GraphInput(
        name="norm_scale",
        kind="parameter",
        type=value_type(COLUMNS),
        drawing=Drawing(kind="normal"),
        path="norm.scale",
    )
    norm = Node(
        name="scaled",
        op="aten.mul.Tensor",
        args=(Ref(node="add1"), Ref(node="norm_scale")),
        results=(value_type(ROWS, COLUMNS),),
        module="norm",
    )
    *before, top = graph.nodes
    top = top.model_copy(update={"args": (Ref(node="scaled"), Ref(node="head_weight"))})
    longer = graph.model_copy(
        update={"inputs": (*graph.inputs, scale), "nodes": (*before, norm, top)}
    )
    assert [(one.label, [node.name for node in one.nodes]) for one in by_blocks(longer)] == [
        ("layers.0", ["mm0", "relu0", "add0"]),
        ("layers.1", ["mm1", "relu1", "add1"]),
        ("head", ["scaled", "top"]),
    ]


def test_parts_by_number_are_cut_where_one_value_is_alive() -> None:
    graph = network()
    segments = by_parts(graph, 2, lambda node: node_cost(graph, node, dict(SHAPES[1])))
    assert [[node.name for node in one.nodes] for one in segments] == [
        ["mm0", "relu0", "add0"],
        ["mm1", "relu1", "add1", "top"],
    ]


def test_more_parts_than_places_are_refused_with_how_many_there_may_be() -> None:
    with pytest.raises(ToolError, match=r"--parts 9: .* into 1 to 7"):
        by_parts(network(), 9, lambda _: 1.0)


def test_a_graph_without_modules_says_to_import_again() -> None:
    graph = network()
    nodes = tuple(node.model_copy(update={"module": ""}) for node in graph.nodes)
    with pytest.raises(ToolError, match=r"does not name the modules.*--parts N"):
        by_blocks(graph.model_copy(update={"nodes": nodes}))
