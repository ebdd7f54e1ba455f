"""What turns token ids into token ids: the interface, the engines, and the process that hosts one."""
