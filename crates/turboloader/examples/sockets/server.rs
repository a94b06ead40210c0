//! The store, in a process of its own.

use std::env;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tl_store_server::{Dialect, Fault, Faults, Service, serve};
use turboloader::{RemoteStores, StoreOptions};

use crate::Outcome;

/// A store that ends with this.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    endpoint: String,
}

impl Server {
    pub(crate) fn start(folder: &Path) -> Outcome<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or("a child has an input")?;
        let output = child.stdout.take().ok_or("a child has an output")?;
        let mut output = BufReader::new(output);
        let mut endpoint = String::new();
        output.read_line(&mut endpoint)?;
        Ok(Self { child, input, output, endpoint: endpoint.trim().to_owned() })
    }

    pub(crate) fn stores(&self) -> RemoteStores {
        let mut options = StoreOptions::default();
        let given = [
            ("endpoint", self.endpoint.as_str()),
            ("access_key_id", "dummy"),
            ("secret_access_key", "dummy"),
        ];
        options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        RemoteStores::new(options)
    }

    /// Ends the process and returns its last words: the counts of requests.
    pub(crate) fn end(mut self) -> Outcome<String> {
        drop(self.input);
        let mut counts = String::new();
        self.output.read_to_string(&mut counts)?;
        self.child.wait()?;
        Ok(counts)
    }
}

/// Serves the folders of a folder as buckets until the parent goes.
pub(crate) fn serve_until_input_ends(folder: &OsStr) -> Outcome<()> {
    let mut service = Service::new(Dialect::S3);
    service.objects.put_folder("", Path::new(folder))?;
    service.speed.first_byte = Duration::from_millis(10);
    service.speed.sigma = 0.5;
    service.speed.rate = 55e6;
    let chances = vec![(Fault::SlowDown, 0.01), (Fault::Reset, 0.005), (Fault::Stall, 0.001)];
    service.faults = Faults::Random { seed: 1, chances };
    let service = Arc::new(service);
    let serving = serve(Arc::clone(&service), 0)?;
    println!("{}", serving.endpoint());
    io::stdin().read_to_end(&mut Vec::new())?;
    // A parent that failed does not read them.
    io::stdout().write_all(format!("{:?}\n", service.counts()).as_bytes()).unwrap_or_default();
    Ok(())
}
