//! The store of `cargo xtask store` in a process of its own, on another core.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tl_benches::is_measuring;
use tl_store::{RemoteStores, StoreOptions};
use tl_store_server::Options;

/// The first argument of the process that serves.
pub(crate) const ARGUMENT: &str = "serve";

/// The core of the store's process, which is not the loader's where there are two.
#[derive(Clone, Copy)]
pub(crate) struct StoreCore(usize);

/// A store that answers until this is dropped.
pub(crate) struct Server {
    process: Child,
    endpoint: String,
}

impl Server {
    /// Serves the folders in `folder` as buckets, on its own core.
    pub(crate) fn start(core: StoreCore, folder: &Path, options: &[&str]) -> Self {
        let options = if is_measuring() { options } else { &[] };
        let mut process = Command::new(std::env::current_exe().expect("the name of this program"))
            .arg(ARGUMENT)
            .arg(core.0.to_string())
            .arg(folder)
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let mut endpoint = String::new();
        let output = process.stdout.as_mut().expect("a pipe");
        BufReader::new(output).read_line(&mut endpoint).expect("the server's endpoint");
        Self { process, endpoint: endpoint.trim().to_owned() }
    }

    /// Stores that reach nothing but this server.
    pub(crate) fn stores(&self) -> RemoteStores {
        let mut options = StoreOptions::default();
        options.options = [
            ("endpoint", self.endpoint.as_str()),
            ("region", "local"),
            ("access_key_id", "none"),
            ("secret_access_key", "none"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        RemoteStores::new(options)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().expect("a process of our own");
        self.process.wait().expect("a process of our own");
    }
}

/// Serves until the process is ended: the core, the folder and options of the store.
pub(crate) fn serve(arguments: &[String]) {
    pin(arguments[0].parse().expect("the number of a core"));
    let serving = Options::parse(&arguments[1..]).and_then(Options::serve).expect("valid options");
    println!("{}", serving.endpoint());
    serving.join();
}

/// Keeps this process and its threads on the first of its cores, and leaves the last to the store.
///
/// A process that is started afterwards inherits the first core and has to be moved.
pub(crate) fn pin_loader() -> StoreCore {
    let allowed = sched_getaffinity(None).expect("the kernel says");
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    pin(cores[0]);
    StoreCore(cores[cores.len() - 1])
}

fn pin(core: usize) {
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one).expect("a core that is allowed");
}
