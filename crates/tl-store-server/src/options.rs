//! A store as a command line describes it.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::dialect::Dialect;
use crate::fault::{Fault, Faults};
use crate::serve::{Serving, serve};
use crate::service::Service;

/// The arguments that [`Options::parse`] reads.
pub const USAGE: &str = "\
usage: cargo xtask store FOLDER [OPTION VALUE]...

Serves a folder on 127.0.0.1; its folders are the buckets. /_stats has the counts of requests.

  --dialect NAME         s3 (default), gcs, azure, hub or http
  --port N               the port; without it any free one, which is printed
  --first-byte TIME      the median time before the first byte, such as 30ms (default 0ms)
  --sigma N              the standard deviation of its logarithm (default 0.5)
  --per-connection RATE  bytes a second of one connection, such as 55MB (default: no limit)
  --link RATE            bytes a second of all connections together (default: no limit)
  --fault LIST           faults and their shares, such as 503:1%,reset:0.5%,stall:0.1%;
                         there are 429, silence, short, long, whole, range, tag, 403, 404,
                         redirect, gzip and lost, too
  --seed N               the seed of times and faults (default 1)
  --key NAME             the access key that requests must be signed with";

/// A folder, and how it is served.
#[derive(Debug)]
pub struct Options {
    folder: PathBuf,
    service: Service,
    port: u16,
}

impl Options {
    /// Reads `FOLDER [OPTION VALUE]...`.
    ///
    /// # Errors
    /// [`USAGE`], or the reason why a value cannot be used.
    pub fn parse(arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let Some((folder, options)) = arguments.split_first() else { return Err(USAGE.into()) };
        let mut service = Service::new(Dialect::S3);
        service.speed.sigma = 0.5;
        let mut port = 0;
        let mut chances = Vec::new();
        for option in options.chunks(2) {
            let [name, value] = option else { return Err(USAGE.into()) };
            match name.as_str() {
                "--dialect" => service.dialect = dialect(value)?,
                "--port" => port = value.parse()?,
                "--first-byte" => service.speed.first_byte = time(value)?,
                "--sigma" => service.speed.sigma = value.parse()?,
                "--link" => service.speed.link = rate(value)?,
                "--per-connection" => service.speed.rate = rate(value)?,
                "--fault" => chances = value.split(',').map(chance).collect::<Result<_, _>>()?,
                "--seed" => service.seed = value.parse()?,
                "--key" => service.key = Some(value.clone()),
                _ => return Err(USAGE.into()),
            }
        }
        if !chances.is_empty() {
            service.faults = Faults::Random { seed: service.seed, chances };
        }
        Ok(Self { folder: folder.into(), service, port })
    }

    /// Reads the folder and answers requests until the result is dropped.
    ///
    /// # Errors
    /// When the folder cannot be read, or the port is taken.
    pub fn serve(self) -> Result<Serving, Box<dyn Error>> {
        self.service.objects.put_folder("", &self.folder)?;
        Ok(serve(Arc::new(self.service), self.port)?)
    }
}

fn dialect(name: &str) -> Result<Dialect, Box<dyn Error>> {
    Ok(match name {
        "s3" => Dialect::S3,
        "gcs" => Dialect::Gcs,
        "hub" => Dialect::Hub,
        "azure" => Dialect::Azure,
        "http" => Dialect::Http,
        _ => return Err(USAGE.into()),
    })
}

fn time(text: &str) -> Result<Duration, Box<dyn Error>> {
    let milliseconds = text.strip_suffix("ms").ok_or("a time is given as 30ms")?;
    Ok(Duration::from_secs_f64(milliseconds.parse::<f64>()? / 1e3))
}

fn rate(text: &str) -> Result<f64, Box<dyn Error>> {
    let megabytes = text.strip_suffix("MB").ok_or("a rate is given as 55MB")?;
    let rate = megabytes.parse::<f64>()? * 1e6;
    if rate >= 1.0 { Ok(rate) } else { Err("a rate is at least a byte a second".into()) }
}

fn chance(text: &str) -> Result<(Fault, f64), Box<dyn Error>> {
    let (name, share) = text.split_once(':').ok_or("a fault is given as 503:1%")?;
    let share = share.strip_suffix('%').ok_or("a share is given in percent")?;
    let fault = match name {
        "503" => Fault::SlowDown,
        "429" => Fault::TooMany,
        "silence" => Fault::Silence,
        "reset" => Fault::Reset,
        "short" => Fault::Short,
        "long" => Fault::Long,
        "whole" => Fault::Whole,
        "range" => Fault::OtherRange,
        "tag" => Fault::OtherTag,
        "403" => Fault::Forbidden,
        "404" => Fault::Missing,
        "redirect" => Fault::Redirect,
        "stall" => Fault::Stall,
        "gzip" => Fault::Gzip,
        "lost" => Fault::Lost,
        _ => return Err(USAGE.into()),
    };
    Ok((fault, share.parse::<f64>()? / 100.0))
}
