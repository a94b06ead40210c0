//! How far nvJPEG's pixels are from the exact ones, over the photographs of a folder.
//!
//! ```text
//! nvjpeg_distance [FOLDER [NVJPEG [DRIVER]]]
//! ```
//!
//! FOLDER, by default `testdata/photos`, is searched for `.jpg` and `.jpeg` files, also in folders below
//! it. NVJPEG is the path of the library, DRIVER that of the driver's; by default both are found by
//! name, nvJPEG in the folders of `PYTHONPATH` too. Prints the version of the library, and how often
//! samples of 8 bits differ by how much. Without a library or a device it says what is missing.

#![expect(clippy::print_stdout, reason = "the table is the output")]

use std::error::Error;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use tl_cuda::{Device, DeviceReason, NvJpeg, NvJpegDecoder, NvJpegLibrary};
use tl_decode::{Image, JpegDecoder, JpegRequest, Limits};

/// The differences that the table has a row for, and all larger ones.
const ROWS: [usize; 6] = [0, 1, 2, 3, 5, 10];

/// Bytes of the device's memory for an image.
const MOST: usize = 1 << 30;

fn is_jpeg(ending: &OsStr) -> bool {
    ending.eq_ignore_ascii_case("jpg") || ending.eq_ignore_ascii_case("jpeg")
}

fn photographs(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            photographs(&path, found)?;
        } else if path.extension().is_some_and(is_jpeg) {
            found.push(path);
        }
    }
    Ok(())
}

/// The library and the device, or the reason why one of them is missing.
fn decoder(
    nvjpeg: Option<&Path>,
    driver: Option<&Path>,
) -> Result<(Device, NvJpegDecoder), DeviceReason> {
    let packages = env::var_os("PYTHONPATH").unwrap_or_default();
    let mut library = NvJpegLibrary::load(nvjpeg, None);
    for folder in env::split_paths(&packages).filter(|_| nvjpeg.is_none()) {
        library = library.or_else(|_| NvJpegLibrary::load(None, Some(&folder)));
    }
    let library = library?;
    println!("nvJPEG {}", library.version());
    let device = match driver {
        Some(driver) => Device::open_with(driver, 0)?,
        None => Device::open(0)?,
    };
    println!("{}", device.name());
    let decoder = Arc::new(NvJpeg::new(&device, library)?).decoder()?;
    Ok((device, decoder))
}

/// How often each absolute difference occurs.
struct Differences([u64; 256]);

impl Differences {
    fn add(&mut self, left: &[u8], right: &[u8]) {
        for (&left, &right) in left.iter().zip(right) {
            self.0[usize::from(left.abs_diff(right))] += 1;
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a share, to be printed")]
    fn share_within(&self, most: usize) -> f64 {
        let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
        100.0 * sum(&self.0[..=most]) / sum(&self.0).max(1.0)
    }

    fn largest(&self) -> usize {
        self.0.iter().rposition(|count| *count > 0).unwrap_or(0)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let here = tl_testdata::shipped!("photos");
    let folder = arguments.first().unwrap_or(&here);
    let nvjpeg = arguments.get(1).map(PathBuf::as_path);
    let mut paths = Vec::new();
    photographs(folder, &mut paths)?;
    paths.sort();
    let (device, mut decoder) = match decoder(nvjpeg, arguments.get(2).map(PathBuf::as_path)) {
        Ok(both) => both,
        Err(reason) => {
            println!("nothing is measured: {reason}");
            return Ok(());
        }
    };
    let stream = device.stream()?;
    let mut exact = JpegDecoder::new(Limits::default());
    let mut image = Image::new();
    let mut all = Differences([0; 256]);
    let mut compared = 0;
    for path in &paths {
        let file = fs::read(path)?;
        exact.decode(&file, &JpegRequest::default(), &mut image)?;
        let decoded = match decoder.decode(&[&file], MOST, &stream) {
            Ok(decoded) => decoded,
            Err(reason) => {
                println!("{}: left out: {reason}", path.display());
                continue;
            }
        };
        let bytes = decoded.read(&stream)?;
        let found = &bytes[..image.data.len().min(bytes.len())];
        let mut own = Differences([0; 256]);
        own.add(found, &image.data);
        all.add(found, &image.data);
        let share = own.share_within(3);
        println!("{}: {share:.3} % within 3, at most {}", path.display(), own.largest());
        compared += 1;
    }
    println!("{compared} of {} photographs:", paths.len());
    for most in ROWS {
        println!("{:9.4} % of the samples within {most}", all.share_within(most));
    }
    println!("the largest difference is {}", all.largest());
    Ok(())
}
