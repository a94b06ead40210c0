//! Where the codec runs. `jpeg-decoder` either starts a thread per component of every image, or
//! hands the work to the rayon pool it is called in, the one of the whole process by default.

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

thread_local! {
    static POOL: Result<ThreadPool, ThreadPoolBuildError> = ThreadPoolBuilder::new()
        .num_threads(1)
        .thread_name(|_| "tl-jpeg".to_owned())
        .build();
}

/// Runs `work` in a pool of one thread that belongs to the calling thread and ends soon after it.
///
/// Rayon can also make a pool of the calling thread itself. That costs the same per image, but
/// leaks the pool, and any other use of rayon on that thread would become sequential.
pub(super) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    POOL.with(|pool| match pool {
        Ok(pool) => Ok(pool.install(work)),
        Err(error) => Err(std::io::Error::other(error.to_string())),
    })
}

#[cfg(test)]
mod tests {
    use std::thread;

    #[test]
    fn each_caller_has_one_thread_for_all_its_images() {
        let codec_thread = || super::run(|| thread::current().id()).unwrap();
        let here = codec_thread();
        assert_eq!(here, codec_thread());
        let elsewhere = thread::spawn(codec_thread).join().unwrap();
        assert_ne!(here, elsewhere);
    }
}
