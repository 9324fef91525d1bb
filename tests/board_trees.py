"""Files of /proc and /sys as boards have them, for probes to read.

Texts are in the form that the kernel documents; numbers are chosen so that every test can work its
answer out by hand.
"""

from pathlib import Path

from device_profiles.system_files import SystemFiles

MIB = 2**20


def meminfo(total_mib, available_mib, swap_mib=0):
    return (
        f"MemTotal:       {total_mib * 1024} kB\n"
        "MemFree:          1234 kB\n"
        f"MemAvailable:   {available_mib * 1024} kB\n"
        f"SwapTotal:      {swap_mib * 1024} kB\n"
    )


def arm_cpuinfo(*parts, maker="0x41"):
    cores = [
        f"processor\t: {n}\nBogoMIPS\t: 108.00\nCPU implementer\t: {maker}\nCPU part\t: {part}\n"
        for n, part in enumerate(parts)
    ]
    return "\n".join(cores)


def cpufreq(governor, most_khz, cores):
    folder = "/sys/devices/system/cpu/cpu{}/cpufreq/"
    return {
        folder.format(n) + name: text
        for n in range(cores)
        for name, text in (("scaling_governor", governor), ("scaling_max_freq", f"{most_khz}\n"))
    }


V2_MOUNT = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
)

PI_4 = {
    "/proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0",
    "/proc/cpuinfo": arm_cpuinfo(*["0xd08"] * 4),
    "/proc/meminfo": meminfo(3792, 3000),
    "/proc/self/cgroup": "0::/system.slice/supernode.service\n",
    "/proc/self/mountinfo": V2_MOUNT,
    # Raspberry Pi OS starts without the memory controller.
    "/proc/cgroups": "#subsys_name hierarchy num_cgroups enabled\ncpu 0 64 1\nmemory 0 64 0\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids\n",
    **cpufreq("ondemand", 1_500_000, 4),
    "/sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "/sys/class/thermal/thermal_zone0/temp": "61834\n",
    "/sys/class/thermal/cooling_device0/type": "rpi-poe-fan\n",
    "/sys/class/thermal/cooling_device0/cur_state": "1\n",
    # Under-voltage now; under-voltage and a capped clock since the start.
    "/sys/devices/platform/soc/soc:firmware/get_throttled": "30001\n",
    "/run/systemd/timesync/synchronized": "",
}

JETSON_ORIN = {
    "/proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
    "/proc/cpuinfo": arm_cpuinfo(*["0xd42"] * 6),
    "/proc/meminfo": meminfo(7620, 5000, swap_mib=3810),
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": V2_MOUNT,
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    **cpufreq("schedutil", 1_510_400, 6),
    "/sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "/sys/class/thermal/thermal_zone0/temp": "49500\n",
    "/sys/class/thermal/thermal_zone1/type": "gpu-thermal\n",
    "/sys/class/thermal/thermal_zone1/temp": "52250\n",
    "/sys/class/thermal/thermal_zone2/type": "cv0-thermal\n",
    "/sys/class/thermal/thermal_zone2/temp": "-256000\n",  # a sensor that is switched off
    "/sys/class/thermal/cooling_device0/type": "cpufreq-cpu0\n",
    "/sys/class/thermal/cooling_device0/cur_state": "0\n",
    "/sys/class/hwmon/hwmon1/name": "ina3221\n",
    "/sys/class/hwmon/hwmon1/in1_label": "VDD_IN\n",
    "/sys/class/hwmon/hwmon1/in1_input": "5000\n",
    "/sys/class/hwmon/hwmon1/curr1_input": "1000\n",
    "/sys/class/hwmon/hwmon1/in2_label": "VDD_CPU_GPU_CV\n",
    "/sys/class/hwmon/hwmon1/in2_input": "5000\n",
    "/sys/class/hwmon/hwmon1/curr2_input": "400\n",
}

PHONE = {
    "/proc/device-tree/model": "Fairphone 5\0",
    "/proc/cpuinfo": arm_cpuinfo("0xd05", "0xd05", "0xd41"),
    "/proc/meminfo": meminfo(7400, 2500),
    "/sys/class/thermal/thermal_zone0/type": "cpu-0-0\n",
    "/sys/class/thermal/thermal_zone0/temp": "71000\n",
    "/sys/class/thermal/cooling_device0/type": "thermal-cpufreq-0\n",
    "/sys/class/thermal/cooling_device0/cur_state": "3\n",
    "/sys/class/power_supply/usb/type": "USB\n",
    "/sys/class/power_supply/battery/type": "Battery\n",
    "/sys/class/power_supply/battery/status": "Discharging\n",
    "/sys/class/power_supply/battery/capacity": "15\n",
    "/sys/class/power_supply/battery/charge_now": "1000000\n",
    "/sys/class/power_supply/battery/voltage_now": "4000000\n",
}

LAPTOP = {
    "/sys/class/dmi/id/sys_vendor": "LENOVO\n",
    "/sys/class/dmi/id/product_name": "20XW\n",
    "/proc/cpuinfo": "".join(
        f"processor\t: {n}\nmodel name\t: 11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz\n\n"
        for n in range(8)
    ),
    "/proc/meminfo": meminfo(15_800, 9000, swap_mib=2048),
    "/proc/self/cgroup": "0::/user.slice/session-2.scope\n",
    "/proc/self/mountinfo": V2_MOUNT,
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    **cpufreq("powersave", 4_700_000, 8),
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
    "/sys/class/power_supply/hid-mouse/type": "Battery\n",
    "/sys/class/power_supply/hid-mouse/scope": "Device\n",
    "/sys/class/power_supply/hid-mouse/capacity": "5\n",
    "/sys/class/power_supply/BAT0/type": "Battery\n",
    "/sys/class/power_supply/BAT0/status": "Charging\n",
    "/sys/class/power_supply/BAT0/capacity": "80\n",
    "/sys/class/power_supply/BAT0/energy_now": "50000000\n",
    "/sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "/sys/class/powercap/intel-rapl:0/energy_uj": "1000000\n",
    "/sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "/sys/class/powercap/intel-rapl:0:0/name": "core\n",
    "/sys/class/powercap/intel-rapl:0:0/energy_uj": "900000\n",
}

# A container of version 2 sees its own group as the root: 600 MiB allowed, 400 taken, 100 of them
# pages of files that may go; half a processor.
CONTAINER_V2 = {
    "/proc/cpuinfo": arm_cpuinfo(*["0xd0b"] * 4),
    "/proc/meminfo": meminfo(8000, 6000),
    "/proc/self/cgroup": "0::/\n",
    "/proc/self/mountinfo": V2_MOUNT,
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "/sys/fs/cgroup/memory.max": f"{600 * MIB}\n",
    "/sys/fs/cgroup/memory.current": f"{400 * MIB}\n",
    "/sys/fs/cgroup/memory.stat": f"anon {300 * MIB}\ninactive_file {100 * MIB}\nslab 5\n",
    "/sys/fs/cgroup/cpu.max": "50000 100000\n",
}

# A container of version 1 sees the host's path, and mounts that begin at its own group.
CONTAINER_V1 = {
    "/proc/cpuinfo": arm_cpuinfo(*["0xd08"] * 4),
    "/proc/meminfo": meminfo(8000, 6000),
    "/proc/self/cgroup": "9:cpu,cpuacct:/docker/4f2a\n4:memory:/docker/4f2a\n0::/system.slice\n",
    "/proc/self/mountinfo": (
        V1_MOUNTS.replace(" / /sys", " /docker/4f2a /sys")
        + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    ),
    "/sys/fs/cgroup/memory/memory.limit_in_bytes": f"{512 * MIB}\n",
    "/sys/fs/cgroup/memory/memory.usage_in_bytes": f"{200 * MIB}\n",
    "/sys/fs/cgroup/memory/memory.stat": f"inactive_file 1\ntotal_inactive_file {50 * MIB}\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "25000\n",
    "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
}


def planted(root: Path, files, commands=None) -> SystemFiles:
    """A machine with these files below ``root``, and with these commands, by their words."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SystemFiles(root, (commands or {}).get)


class Locked(SystemFiles):
    """A machine that keeps files whose names end so from its user, even if that is root."""

    def __init__(self, system: SystemFiles, ending: str):
        super().__init__(system.path("/"), None)
        self._ending = ending

    def text(self, name):
        return None if name.endswith(self._ending) else super().text(name)

    def is_denied(self, name):
        return name.endswith(self._ending) and self.path(name).is_file()
