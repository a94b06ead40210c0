//! The placement of worker threads: their number, processors and priority.

use std::fmt;
use std::io;

use tl_handoff::sync::available_parallelism;

/// One core of this many is left to the consumer and other processes.
const CORES_PER_SPARE: usize = 8;

/// The default number of workers: the cores that this process may use, or those named, less an
/// eighth for the training process itself, whose own threads (the optimiser, the copy to a device)
/// stall the device when they wait for a core. At least one.
pub(crate) fn default_workers(cpus: &Cpus) -> usize {
    let cores = if cpus.0.is_empty() { available_parallelism() } else { cpus.0.len() };
    workers_on(cores)
}

fn workers_on(cores: usize) -> usize {
    cores.saturating_sub(cores.div_ceil(CORES_PER_SPARE)).max(1)
}

/// Processors by number, as `/proc/cpuinfo` and `taskset` count them; none means wherever the system
/// sees fit.
///
/// ```
/// let cpus: tl_pipeline::Cpus = "2-4,7".parse()?;
/// assert_eq!(cpus.numbers(), [2, 3, 4, 7]);
/// assert_eq!(cpus.to_string(), "2-4,7");
/// # Ok::<(), tl_pipeline::CpusError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus(Vec<usize>);

/// A list of processors that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{part}` is neither a processor nor a range of them below {}", Cpus::MOST)]
pub struct CpusError {
    /// The text between two commas.
    pub part: String,
}

impl Cpus {
    /// Numbers of processors are below this: the size of the system's own set.
    pub const MOST: usize = 1024;

    /// These processors.
    ///
    /// # Errors
    /// [`CpusError`] for a number that is not below [`Cpus::MOST`].
    pub fn new(numbers: impl IntoIterator<Item = usize>) -> Result<Self, CpusError> {
        let mut numbers: Vec<usize> = numbers.into_iter().collect();
        numbers.sort_unstable();
        numbers.dedup();
        match numbers.last() {
            Some(&last) if last >= Self::MOST => Err(CpusError { part: last.to_string() }),
            Some(_) | None => Ok(Self(numbers)),
        }
    }

    /// Their numbers, in order.
    #[must_use]
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }
}

impl std::str::FromStr for Cpus {
    type Err = CpusError;

    /// Reads numbers and ranges between commas: `0,2-5`.
    fn from_str(text: &str) -> Result<Self, CpusError> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let wrong = || CpusError { part: part.to_owned() };
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number =
                |text: &str| text.trim().parse::<usize>().ok().filter(|&cpu| cpu < Self::MOST);
            let first = number(first).ok_or_else(wrong)?;
            let last = number(last).ok_or_else(wrong)?;
            if first > last {
                return Err(wrong());
            }
            numbers.extend(first..=last);
        }
        Self::new(numbers)
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, run) in self.0.chunk_by(|a, b| a + 1 == *b).enumerate() {
            let comma = if place > 0 { "," } else { "" };
            match run {
                [] => {}
                [only] => write!(f, "{comma}{only}")?,
                [first, .., last] => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// A worker thread that cannot run with its settings.
#[derive(Debug, thiserror::Error)]
#[error("workers cannot {setting}: {source}")]
pub struct ThreadError {
    /// The setting, as in `run on processors 1-3`.
    setting: String,
    /// The refusal of the system.
    source: io::Error,
}

impl ThreadError {
    fn cpus(cpus: &Cpus, source: io::Error) -> Self {
        Self { setting: format!("run on processors {cpus}"), source }
    }

    fn nice(nice: i32, source: io::Error) -> Self {
        Self { setting: format!("have niceness {nice}"), source }
    }
}

/// Sends the calling thread to its processors and sets its niceness; no processors and niceness 0
/// leave it as it is.
///
/// # Errors
/// [`ThreadError`]: processors that this machine has not or the process may not use, and niceness
/// below the present one without the right to that.
#[cfg(all(target_os = "linux", not(feature = "shuttle")))]
pub(crate) fn settle(cpus: &Cpus, nice: i32) -> Result<(), ThreadError> {
    if !cpus.0.is_empty() {
        let mut set = rustix::thread::CpuSet::new();
        for &cpu in &cpus.0 {
            set.set(cpu);
        }
        rustix::thread::sched_setaffinity(None, &set)
            .map_err(|source| ThreadError::cpus(cpus, source.into()))?;
    }
    if nice != 0 {
        // On Linux niceness belongs to threads, whatever the call is named.
        rustix::process::setpriority_process(None, nice)
            .map_err(|source| ThreadError::nice(nice, source.into()))?;
    }
    Ok(())
}

#[cfg(any(not(target_os = "linux"), feature = "shuttle"))]
pub(crate) fn settle(cpus: &Cpus, nice: i32) -> Result<(), ThreadError> {
    let source = || io::Error::from(io::ErrorKind::Unsupported);
    if !cpus.0.is_empty() {
        return Err(ThreadError::cpus(cpus, source()));
    }
    if nice != 0 {
        return Err(ThreadError::nice(nice, source()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trainer_has_room() {
        let expected = [(1, 1), (2, 1), (3, 2), (8, 7), (9, 7), (16, 14), (96, 84)];
        for (cores, workers) in expected {
            assert_eq!(workers_on(cores), workers, "{cores} cores");
        }
        assert_eq!(default_workers(&Cpus::new([5, 6, 6, 7]).unwrap()), 2);
    }

    #[test]
    fn lists_of_processors_are_read_and_written() {
        let check = |text: &str, numbers: &[usize], shown: &str| {
            let cpus: Cpus = text.parse().unwrap();
            assert_eq!((cpus.numbers(), cpus.to_string().as_str()), (numbers, shown));
        };
        check("0", &[0], "0");
        check("3,1-2,2", &[1, 2, 3], "1-3");
        check("0,2-3,1023", &[0, 2, 3, 1023], "0,2-3,1023");
        for wrong in ["", ",", "1,", "a", "3-1", "1024", "0-1024", "-1", "1-2-3"] {
            let error = wrong.parse::<Cpus>().unwrap_err();
            assert!(error.to_string().contains("processor"), "{wrong}");
        }
        assert_eq!(Cpus::default().to_string(), "");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_goes_where_it_is_sent() {
        let here = rustix::thread::sched_getaffinity(None).unwrap();
        let cpu = (0..Cpus::MOST).find(|&cpu| here.is_set(cpu)).unwrap();
        let thread = tl_handoff::sync::thread::spawn(move || {
            settle(&Cpus::new([cpu]).unwrap(), 19).unwrap();
            let set = rustix::thread::sched_getaffinity(None).unwrap();
            let absent = Cpus::new([Cpus::MOST - 1]).unwrap();
            let error = settle(&absent, 0).unwrap_err();
            assert!(error.to_string().contains(&format!("processors {absent}: ")), "{error}");
            (set.count(), set.is_set(cpu), rustix::process::getpriority_process(None).unwrap())
        });
        assert_eq!(thread.join().unwrap(), (1, true, 19));
        // The others stay where they were.
        assert_eq!(rustix::thread::sched_getaffinity(None).unwrap(), here);
    }
}
