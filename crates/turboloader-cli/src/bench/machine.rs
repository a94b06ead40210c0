//! Counters of the operating system: CPU time of this process and of the whole machine, memory.

use std::fs;

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

/// The columns of the `cpu` line of `/proc/stat` that are work: user, nice, system, irq, softirq,
/// steal. Idle and waiting for disks are not; guest time is already part of user time.
const BUSY_COLUMNS: [usize; 6] = [0, 1, 2, 5, 6, 7];

/// CPU seconds this process has used, all threads.
pub(crate) fn own_cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "seconds and nanoseconds are far below 2^53")]
    let seconds = time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9;
    seconds
}

/// CPU seconds the machine has used, all processes; `None` where `/proc/stat` is missing.
pub(crate) fn machine_cpu_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let busy = busy_ticks(text.lines().next()?)?;
    #[expect(clippy::cast_precision_loss, reason = "2^53 ticks are a million years")]
    let seconds = busy as f64 / clock_ticks_per_second() as f64;
    Some(seconds)
}

/// The most memory this process has held, in MiB; `None` where `/proc` does not say.
pub(crate) fn peak_rss_mib() -> Option<f64> {
    peak_kib(&fs::read_to_string("/proc/self/status").ok()?)
        .map(|kib| f64::from(u32::try_from(kib).unwrap_or(u32::MAX)) / 1024.0)
}

fn busy_ticks(cpu_line: &str) -> Option<u64> {
    let mut words = cpu_line.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let columns: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    BUSY_COLUMNS.iter().map(|&column| columns.get(column).copied()).sum()
}

fn peak_kib(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{busy_ticks, machine_cpu_seconds, own_cpu_seconds, peak_kib, peak_rss_mib};

    #[test]
    fn idle_time_is_no_work() {
        assert_eq!(busy_ticks("cpu  1 2 4 1000 1000 8 16 32 1000 0"), Some(63));
        assert_eq!(busy_ticks("cpu0 1 2 4"), None);
        assert_eq!(busy_ticks("cpu  1 2"), None);
    }

    #[test]
    fn the_peak_is_read_in_kib() {
        assert_eq!(peak_kib("VmPeak:\t 9 kB\nVmHWM:\t  2048 kB\nVmRSS:\t 1 kB\n"), Some(2048));
        assert_eq!(peak_kib("VmRSS:\t 1 kB\n"), None);
    }

    #[test]
    fn this_process_has_used_something() {
        let before = own_cpu_seconds();
        assert!(before > 0.0);
        assert!(machine_cpu_seconds().is_none_or(|machine| machine > 0.0));
        assert!(peak_rss_mib().is_none_or(|peak| peak > 1.0));
    }
}
