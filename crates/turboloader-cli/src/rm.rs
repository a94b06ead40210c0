//! `tl rm --uploads`: the parts that interrupted uploads left in a bucket.

use std::time::Duration;

use serde::Serialize;
use tbl_io::Location;

use crate::args::GlobalArgs;
use crate::failure::{Failure, Verdict};
use crate::output::{self, Stdout};

#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: &'static str,
    object: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<u64>,
    ended: bool,
}

/// End the uploads that killed processes left in a bucket
///
/// A file that is written to a store becomes an object when it is complete. A process that is killed
/// before that (kill -9, a lost machine) leaves parts, which no listing of objects shows and which
/// are paid for. This command lists the uploads of S3 that are neither complete nor ended, and ends
/// them. It removes no object. An upload under way looks the same, so only those of --older are
/// ended.
///
/// Google Cloud Storage ends such uploads by a lifecycle rule of the bucket, and Azure removes their
/// blocks after a week.
///
/// Examples:
///   tl rm --uploads s3://bucket/train --dry-run
///   tl rm --uploads s3://bucket/train --older 12h
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The beginning of the URLs of objects: s3://BUCKET/train includes s3://BUCKET/train-0.tbl
    #[arg(value_name = "URL")]
    pub(crate) prefix: String,

    /// End uploads. It has to be given: nothing else is removed
    #[arg(long, required = true)]
    pub(crate) uploads: bool,

    /// Leave uploads that were begun within this time, such as 30m, 12h or 2d; 0s leaves none
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1d")]
    pub(crate) older: Duration,

    /// List what would be ended
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print one JSON object per upload
    #[arg(long)]
    pub(crate) json: bool,
}

/// Ends uploads.
pub(crate) fn run(args: &Args, global: &GlobalArgs) -> Result<Verdict, Failure> {
    let mut stdout = Stdout::open()?;
    let stores = global.remote();
    let mut left = 0;
    let mut failed = 0;
    for upload in stores.pending_uploads(&Location::new(&args.prefix))? {
        let age = upload.age;
        if age.unwrap_or_default() < args.older {
            left += 1;
            continue;
        }
        if !args.dry_run
            && let Err(error) = stores.end_upload(&upload)
        {
            output::note(&error);
            failed += 1;
            continue;
        }
        if args.json {
            let object = upload.object.url().unwrap_or_default();
            let age_seconds = age.map(|age| age.as_secs());
            let schema = "tl.rm/1";
            stdout.json_line(&Report { schema, object, age_seconds, ended: !args.dry_run })?;
        } else {
            let what = if args.dry_run { "would end" } else { "ended" };
            let object = &upload.object;
            let begun = age.map_or_else(String::new, |age| format!(", begun {} ago", rounded(age)));
            stdout.line(&format_args!("{what} the upload to {object}{begun}"))?;
        }
    }
    stdout.finish()?;
    if left > 0 && !global.quiet {
        output::note(&format_args!("{left} later uploads are left (--older)"));
    }
    Ok(if failed == 0 { Verdict::Good } else { Verdict::Bad })
}

/// A time in its largest unit.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn time(text: &str) -> Result<Duration, &'static str> {
    const EXPECTED: &str = "expected a time such as 45s, 30m, 12h or 2d";
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or(EXPECTED)?;
    let number: u64 = number.parse().map_err(|_| EXPECTED)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(EXPECTED),
    };
    number.checked_mul(unit).map(Duration::from_secs).ok_or(EXPECTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("90m").map(rounded), Ok("1 h".to_owned()));
        assert_eq!(time("2d"), Ok(Duration::from_secs(172_800)));
        for wrong in ["", "d", "1", "-1d", "1w", "1é", "99999999999999999999d"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
