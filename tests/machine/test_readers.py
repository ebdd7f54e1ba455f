from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.machine import memory, network, processor, storage
from harness.machine.facts import Fact, Unreadable, command, counted, gib, read
from tests.machine import recorded


def values(facts):
    return {key: fact.value for key, fact in facts.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            recorded.LSCPU_X86,
            ("Intel(R) Xeon(R) Platinum 8480C", 2, 56, "3800 MHz (maximum)"),
        ),
        (recorded.LSCPU_GRACE, ("Grace A02 (Neoverse-V2)", 2, 72, "3474 MHz (maximum)")),
        (recorded.LSCPU_VM, ("AMD EPYC", 1, 2, None)),
        (recorded.LSCPU_ARM_CLUSTERS, ("Cortex-A72", None, None, None)),
    ],
)
def test_lscpu(text, expected):
    facts = values(processor.facts_of(processor.parse_lscpu(text), None))
    assert tuple(facts[key] for key in processor.KEYS[:4]) == expected


def test_lscpu_caches_flat_and_nested():
    grace = processor.facts_of(processor.parse_lscpu(recorded.LSCPU_GRACE), None)
    assert grace["host_processor_caches"].value == "L1d 9 MiB (144 instances), L3 228 MiB (2 instances)"
    nested = processor.facts_of(processor.parse_lscpu(recorded.LSCPU_X86), None)
    assert nested["host_processor_caches"].value == (
        "L1d 5.3 MiB (112 instances), L2 224 MiB (112 instances), L3 210 MiB (2 instances)"
    )


def test_what_lscpu_leaves_out_says_so():
    fact = processor.facts_of(processor.parse_lscpu(recorded.LSCPU_VM), None)["host_processor_frequency"]
    assert fact == Fact(None, "not told by lscpu -J: CPU max MHz")


def test_topology_counts_where_lscpu_does_not(tmp_path):
    for cpu, (package, core) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (0, 0), (0, 1), (1, 0), (1, 1)]):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{core}\n")
    topology = processor.read_topology(tmp_path)
    assert topology == processor.Topology(sockets=2, cores=2)
    facts = processor.facts_of(processor.parse_lscpu(recorded.LSCPU_ARM_CLUSTERS), topology)
    assert facts["host_processors_per_node"].value == 2
    assert "topology" in facts["host_processors_per_node"].source


def test_topology_that_the_kernel_does_not_number(tmp_path):
    folder = tmp_path / "cpu0" / "topology"
    folder.mkdir(parents=True)
    (folder / "physical_package_id").write_text("-1\n")
    (folder / "core_id").write_text("0\n")
    assert processor.read_topology(tmp_path) is None
    assert processor.read_topology(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("text", "capacity", "kind"),
    [
        (recorded.LSBLK_VM, "1x 256 GiB virtual disk", "virtual disk"),
        (recorded.LSBLK_DGX, "2x 3.5 TiB NVMe SSD, 1x 1.7 TiB NVMe SSD", "NVMe SSD"),
        (recorded.LSBLK_OLD, "1x 3.6 TiB SATA HDD, 1x 447.1 GiB SATA SSD", "SATA HDD, SATA SSD"),
    ],
)
def test_lsblk(text, capacity, kind):
    facts = values(storage.facts_of(storage.parse_lsblk(text)))
    assert facts == {"host_storage_capacity": capacity, "host_storage_type": kind}


def test_without_lsblk_the_mounted_file_systems_count(monkeypatch):
    def absent(*argv):
        raise Unreadable("lsblk is not installed")

    monkeypatch.setattr(storage, "command", absent)
    monkeypatch.setattr(storage, "_mounts", lambda: {"/dev/x": "/"})
    facts = storage.read_storage()
    assert facts["host_storage_capacity"].value.endswith("(file systems)")
    assert facts["host_storage_type"] == Fact(None, "lsblk is not installed")
    monkeypatch.setattr(storage, "_mounts", dict)
    with pytest.raises(Unreadable):
        storage.read_storage()


def test_dmidecode():
    assert memory.parse_dmidecode(recorded.DMIDECODE) == "2x 64 GB DDR5 4400 MT/s, Multi-bit ECC"
    with pytest.raises(Unreadable):
        memory.parse_dmidecode("# dmidecode 3.3\nScanning /dev/mem for entry point.\n")


def test_memory_modules_without_dmi(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "DMI", tmp_path / "absent")
    facts = read(memory.MODULE_KEYS, memory.read_modules)
    assert facts == {"host_memory_configuration": Fact(None, "the machine has no DMI tables")}


def test_cards_are_interfaces_with_a_device(tmp_path):
    driver = tmp_path / "drivers" / "mlx5_core"
    driver.mkdir(parents=True)
    for name, kind, physical in [
        ("lo", "772", False),
        ("docker0", "1", False),
        ("ens1", "1", True),
        ("ib0", "32", True),
    ]:
        folder = tmp_path / "net" / name
        folder.mkdir(parents=True)
        (folder / "type").write_text(kind + "\n")
        if physical:
            (folder / "device").mkdir()
            (folder / "device" / "driver").symlink_to(driver)
    cards = network.read_cards(tmp_path / "net")
    assert [(card.link, card.driver) for card in cards] == [("Ethernet", "mlx5_core"), ("InfiniBand", "mlx5_core")]


def test_networking_names_the_links_that_are_up():
    cards = [
        network.Card("Ethernet", "mlx5_core", True, 200_000),
        network.Card("Ethernet", "mlx5_core", True, 200_000),
        network.Card("InfiniBand", "mlx5_core", False, None),
    ]
    assert values(network.facts_of(cards)) == {
        "host_networking": "Ethernet 200 Gb/s (mlx5_core)",
        "host_network_card_count": "2x Ethernet 200 Gb/s (mlx5_core), 1x InfiniBand (mlx5_core)",
    }
    with pytest.raises(Unreadable):
        network.facts_of([])


def test_a_tool_that_is_absent_slow_or_failing_gives_its_reason(monkeypatch):
    with pytest.raises(Unreadable, match="not installed"):
        command("no-such-tool-anywhere")
    with pytest.raises(Unreadable, match="failed"):
        command("ls", "/no/such/folder")
    monkeypatch.setattr("harness.machine.facts.COMMAND_TIMEOUT_S", 0.05)
    with pytest.raises(Unreadable, match="did not answer"):
        command("sleep", "5")


def test_facts_name_their_source():
    with pytest.raises(ValueError, match="source"):
        Fact("x", "")
    with pytest.raises(ValueError, match="empty"):
        Fact("", "lscpu")


def test_sizes_and_counts():
    assert gib(25_276_510_208) == "23.5 GiB"
    assert gib(2**41) == "2 TiB"
    assert counted(["a", "b", "a"]) == "2x a, 1x b"


@given(
    st.one_of(
        st.text(),
        st.recursive(
            st.none() | st.integers() | st.text(),
            lambda c: (
                st.lists(c)
                | st.dictionaries(
                    st.sampled_from(["lscpu", "blockdevices", "field", "data", "children", "type", "size", "name"]), c
                )
            ),
        ).map(repr),
    )
)
def test_no_text_breaks_a_reader(text):
    text = text.replace("'", '"').replace("None", "null")
    for keys, reader in (
        (processor.KEYS, lambda: processor.facts_of(processor.parse_lscpu(text), None)),
        (storage.KEYS, lambda: storage.facts_of(storage.parse_lsblk(text))),
        (memory.MODULE_KEYS, lambda: {memory.MODULE_KEYS[0]: Fact(memory.parse_dmidecode(text), "dmidecode")}),
    ):
        facts = read(keys, reader)
        assert set(facts) == set(keys)
        assert all(fact.source for fact in facts.values())
