//! Compiles the few lines of C between the benchmarks and libjpeg-turbo, when that is asked for.

fn main() {
    println!("cargo::rerun-if-changed=libjpeg_turbo.c");
    #[cfg(feature = "libjpeg-turbo")]
    {
        let include = std::env::var_os("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys says where");
        cc::Build::new()
            .file("libjpeg_turbo.c")
            .include(include)
            .compile("tl_benches_libjpeg_turbo");
    }
}
