"""What tools printed on machines of several kinds, shortened to the lines that are read and some that are not."""

LSCPU_X86 = """
{"lscpu": [
  {"field": "Architecture:", "data": "x86_64", "children": [{"field": "CPU op-mode(s):", "data": "32-bit, 64-bit"}]},
  {"field": "CPU(s):", "data": "224", "children": [{"field": "On-line CPU(s) list:", "data": "0-223"}]},
  {"field": "Vendor ID:", "data": "GenuineIntel", "children": [
    {"field": "Model name:", "data": "Intel(R) Xeon(R) Platinum 8480C", "children": [
      {"field": "Thread(s) per core:", "data": "2"}, {"field": "Core(s) per socket:", "data": "56"},
      {"field": "Socket(s):", "data": "2"}, {"field": "CPU max MHz:", "data": "3800.0000"}]}]},
  {"field": "Caches (sum of all):", "data": null, "children": [
    {"field": "L1d:", "data": "5.3 MiB (112 instances)"}, {"field": "L2:", "data": "224 MiB (112 instances)"},
    {"field": "L3:", "data": "210 MiB (2 instances)"}]}
]}
"""

LSCPU_GRACE = """
{"lscpu": [
  {"field": "Architecture:", "data": "aarch64"}, {"field": "CPU(s):", "data": "144"},
  {"field": "Vendor ID:", "data": "ARM"}, {"field": "BIOS Vendor ID:", "data": "NVIDIA"},
  {"field": "Model name:", "data": "Neoverse-V2"},
  {"field": "BIOS Model name:", "data": "Grace A02 Not Specified CPU @ 3.4GHz"},
  {"field": "Thread(s) per core:", "data": "1"}, {"field": "Core(s) per socket:", "data": "72"},
  {"field": "Socket(s):", "data": "2"}, {"field": "CPU max MHz:", "data": "3474.0000"},
  {"field": "L1d cache:", "data": "9 MiB (144 instances)"}, {"field": "L3 cache:", "data": "228 MiB (2 instances)"}
]}
"""

LSCPU_ARM_CLUSTERS = """
{"lscpu": [
  {"field": "Architecture:", "data": "aarch64"}, {"field": "CPU(s):", "data": "4"},
  {"field": "Model name:", "data": "Cortex-A72"}, {"field": "Thread(s) per core:", "data": "1"},
  {"field": "Core(s) per cluster:", "data": "4"}, {"field": "Socket(s):", "data": "-"},
  {"field": "Cluster(s):", "data": "1"}
]}
"""

LSCPU_VM = """
{"lscpu": [
  {"field": "Architecture:", "data": "x86_64"}, {"field": "CPU(s):", "data": "2"},
  {"field": "Model name:", "data": "AMD EPYC"}, {"field": "Thread(s) per core:", "data": "1"},
  {"field": "Core(s) per socket:", "data": "2"}, {"field": "Socket(s):", "data": "1"},
  {"field": "Hypervisor vendor:", "data": "KVM"}, {"field": "L2 cache:", "data": "1 MiB (2 instances)"},
  {"field": "L3 cache:", "data": "32 MiB (1 instance)"}
]}
"""

LSBLK_VM = """
{"blockdevices": [
  {"name": "zram0", "type": "disk", "size": 0, "tran": null, "rota": false},
  {"name": "vda", "type": "disk", "size": 274877906944, "tran": null, "rota": true}
]}
"""

LSBLK_DGX = """
{"blockdevices": [
  {"name": "nvme0n1", "type": "disk", "size": 1920383410176, "tran": "nvme", "rota": false},
  {"name": "nvme1n1", "type": "disk", "size": 3840755982336, "tran": "nvme", "rota": false},
  {"name": "nvme2n1", "type": "disk", "size": 3840755982336, "tran": "nvme", "rota": false},
  {"name": "loop0", "type": "loop", "size": 67108864, "tran": null, "rota": false},
  {"name": "md0", "type": "raid0", "size": 7681511964672, "tran": null, "rota": false}
]}
"""

LSBLK_OLD = """
{"blockdevices": [
  {"name": "sda", "type": "disk", "size": "4000787030016", "tran": "sata", "rota": "1"},
  {"name": "sdb", "type": "disk", "size": "480103981056", "tran": "sata", "rota": "0"}
]}
"""

DMIDECODE = """
# dmidecode 3.3
Getting SMBIOS data from sysfs.
SMBIOS 3.5.0 present.

Handle 0x0026, DMI type 16, 23 bytes
Physical Memory Array
\tLocation: System Board Or Motherboard
\tUse: System Memory
\tError Correction Type: Multi-bit ECC
\tMaximum Capacity: 6 TB

Handle 0x0028, DMI type 17, 92 bytes
Memory Device
\tTotal Width: 80 bits
\tSize: 64 GB
\tLocator: CPU0_DIMM_A1
\tType: DDR5
\tSpeed: 4800 MT/s
\tSerial Number: 80AD0123
\tConfigured Memory Speed: 4400 MT/s

Handle 0x0029, DMI type 17, 92 bytes
Memory Device
\tSize: 64 GB
\tType: DDR5
\tSpeed: 4800 MT/s
\tSerial Number: 80AD0124
\tConfigured Memory Speed: 4400 MT/s

Handle 0x002A, DMI type 17, 92 bytes
Memory Device
\tSize: No Module Installed
\tType: Unknown
"""

MLPERF_SYSINFO = """
{
 "submitter": "Example",
 "submitter_contact": "someone@example.com",
 "system_name": "2xCPU",
 "status": "available",
 "system_type": "datacenter",
 "division": "closed",
 "system_size": "1x AMD EPYC",
 "number_of_nodes": 1,
 "host_processor_model_name": "AMD EPYC",
 "host_processors_per_node": 1,
 "host_processor_core_count": 2,
 "host_processor_vcpu_count": 2,
 "host_processor_frequency": "",
 "host_processor_caches": "L1d: 64 KiB (2 instances); L1i: 64 KiB (2 instances); L3: 32 MiB (1 instance)",
 "host_processor_interconnect": "Single NUMA node",
 "host_memory_capacity": "25G",
 "host_storage_type": "SSD + HDD",
 "host_storage_capacity": "252 GB HDD",
 "host_memory_configuration": "",
 "host_networking": "Ethernet",
 "host_networking_topology": "",
 "host_network_card_count": "1x Ethernet",
 "accelerator_model_name": "",
 "accelerators_per_node": "",
 "accelerator_memory_capacity": "",
 "accelerator_memory_configuration": "",
 "accelerator_host_interconnect": "",
 "accelerator_interconnect": "",
 "accelerator_interconnect_topology": "",
 "accelerator_frequency": "",
 "accelerator_on-chip_memories": "",
 "framework": "",
 "operating_system": "debian 12",
 "other_software_stack": "",
 "hw_notes": "",
 "sw_notes": "",
 "other_hardware": "",
 "cooling": "air",
 "system_type_detail": "",
 "mlperf_sysinfo": {
  "version": "1.0.0a12",
  "profile": "inference",
  "profile_round": "6.0",
  "shape": "flat",
  "benchmark": "inference",
  "captured_at": "2026-11-30T15:01:19+00:00",
  "nodes_expected": 1,
  "nodes_collected": 1,
  "complete": true
 }
}
"""
"""What mlperf-sysinfo 1.0.0a12 wrote of a virtual machine without accelerators."""
