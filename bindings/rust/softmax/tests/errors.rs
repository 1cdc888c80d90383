//! What is refused, with which status, and that nothing is written then.
use softmax::{sys, Algo, Device, Error, Handle, Op};
use std::ptr;

fn cpu() -> Handle {
    Handle::new(Device::Cpu).unwrap()
}

fn expect(result: Result<(), Error>, status: i32, words: &str) {
    let error = result.expect_err("must be refused");
    assert_eq!(error.status(), status, "{}", error);
    assert_eq!(error.category(), status / 1000);
    assert!(error.sentence().contains(words), "{}", error);
    assert!(error.to_string().ends_with(&format!("[{}]", error.name())));
    assert_eq!(error.cuda_error(), 0);
}

#[test]
fn lengths_that_do_not_fit_are_refused_before_the_call() {
    let handle = cpu();
    let bad = sys::SOFTMAX_STATUS_BAD_SHAPE;
    let mut data = [3.0f32; 6];
    for (rows, cols) in [
        (2, 2),
        (2, 4),
        (0, 3),
        (7, 1),
        (6, 0),
        (usize::MAX, usize::MAX),
    ] {
        expect(
            handle.softmax_in_place(&mut data, rows, cols),
            bad,
            "6 elements",
        );
        expect(
            handle.log_softmax_in_place(&mut data, rows, cols),
            bad,
            "6 elements",
        );
    }
    // A product that wraps around to the length.
    expect(
        handle.softmax_in_place(&mut data, usize::MAX / 2 + 1, 2),
        bad,
        "6 elements",
    );
    expect(
        handle.softmax_in_place::<f32>(&mut [], usize::MAX / 2 + 1, 2),
        bad,
        "0 elements",
    );
    let mut out = [3.0f32; 5];
    expect(
        handle.softmax_to(&data, &mut out, 2, 3),
        bad,
        "y has 5 elements",
    );
    expect(
        handle.softmax_to(&out, &mut data, 2, 3),
        bad,
        "x has 5 elements",
    );
    assert_eq!((data, out), ([3.0; 6], [3.0; 5]));
}

#[test]
fn empty_matrices_are_a_success() {
    let handle = cpu();
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (0, i64::MAX as usize)] {
        handle.softmax_in_place::<f32>(&mut [], rows, cols).unwrap();
        handle
            .log_softmax_to::<f64, f64>(&[], &mut [], rows, cols)
            .unwrap();
    }
    let large = usize::MAX;
    expect(
        handle.softmax_in_place::<f32>(&mut [], 0, large),
        sys::SOFTMAX_STATUS_BAD_SHAPE,
        "does not fit 63 bits",
    );
}

#[test]
fn algorithms_that_do_not_exist_or_do_not_run_here_are_refused_and_nothing_is_written() {
    let handle = cpu();
    let mut data = [3.0f32; 6];
    let unsupported = sys::SOFTMAX_STATUS_NOT_SUPPORTED_ALGO;
    for algo in [Algo::SHARED, Algo::WARP_ONLINE, Algo::CLUSTER] {
        let name = algo.name().unwrap();
        expect(
            handle.with(algo).softmax_in_place(&mut data, 2, 3),
            unsupported,
            name,
        );
    }
    let call = handle.with(Algo(777));
    expect(
        call.softmax_in_place(&mut data, 2, 3),
        sys::SOFTMAX_STATUS_BAD_ENUM,
        "777",
    );
    assert_eq!(data, [3.0; 6]);
}

#[test]
fn pointers_are_checked_by_the_library() {
    let handle = cpu();
    let call = handle.with(Algo::AUTO);
    let mut data = [3.0f32; 6];
    let (none, at) = (ptr::null_mut(), data.as_mut_ptr());
    unsafe {
        expect(
            call.softmax_device(ptr::null::<f32>(), at, 2, 3, none),
            sys::SOFTMAX_STATUS_NULL_POINTER,
            "x",
        );
        let inside = at.add(1) as *const f32;
        expect(
            call.softmax_device(inside, at, 1, 4, none),
            sys::SOFTMAX_STATUS_OVERLAP,
            "overlap",
        );
        let odd = (at as *const u8).add(1) as *const f32;
        expect(
            call.softmax_device(odd, at.add(3), 1, 2, none),
            sys::SOFTMAX_STATUS_INVALID_ARGUMENT,
            "align",
        );
        let stream = 1usize as sys::softmax_stream_t;
        expect(
            call.softmax_device(at as *const f32, at, 2, 3, stream),
            sys::SOFTMAX_STATUS_WRONG_DEVICE,
            "stream",
        );
        expect(
            call.softmax_device(at as *const f32, at, 1 << 40, 1 << 40, none),
            sys::SOFTMAX_STATUS_BAD_SHAPE,
            "",
        );
    }
    assert_eq!(data, [3.0; 6]);
}

#[test]
fn devices_that_do_not_exist_are_refused() {
    let count = softmax::device_count().unwrap();
    let error = Handle::new(Device::Cuda(count as i32)).expect_err("no such device");
    assert!([1, 2].contains(&error.category()), "{}", error);
    let error = Handle::new(Device::Cuda(-1)).expect_err("a negative ordinal is no device");
    assert_eq!(error.status(), sys::SOFTMAX_STATUS_WRONG_DEVICE);
    let auto = Handle::new(Device::Auto).unwrap().device();
    assert_eq!(auto == Device::Cpu, count == 0);
}

#[test]
fn select_says_what_and_why_or_why_not() {
    let handle = cpu();
    let choice = handle
        .select::<f32, f32>(Op::Softmax, 1 << 33, 1000)
        .unwrap();
    assert!(choice.algo.name().is_some());
    assert!(!choice.kernel.is_empty() && !choice.reason.is_empty());
    assert!(choice.threads >= 1);
    let with = handle
        .with(Algo::ONLINE)
        .select::<softmax::F16, f32>(Op::LogSoftmax, 4, 7);
    assert_eq!(with.unwrap().algo, Algo::ONLINE);
    let error = handle
        .with(Algo::GRID)
        .select::<f32, f32>(Op::Softmax, 4, 7)
        .unwrap_err();
    assert_eq!(error.status(), sys::SOFTMAX_STATUS_NOT_SUPPORTED_ALGO);
    let error = handle
        .select::<f64, f64>(Op::Softmax, usize::MAX, 1)
        .unwrap_err();
    assert_eq!(error.status(), sys::SOFTMAX_STATUS_BAD_SHAPE);
    let error = handle
        .select::<f64, f64>(Op::Softmax, 1 << 40, 1 << 40)
        .unwrap_err();
    assert_eq!(error.status(), sys::SOFTMAX_STATUS_BAD_SHAPE);
}

#[test]
fn names_lead_to_numbers_and_back() {
    for (algo, name) in [
        (Algo::AUTO, "auto"),
        (Algo::NAIVE, "naive"),
        (Algo::SHARED, "shared"),
        (Algo::SHUFFLE, "shuffle"),
        (Algo::VECTOR, "vector"),
        (Algo::ONLINE, "online"),
        (Algo::WARP_ONLINE, "warp_online"),
        (Algo::WARP, "warp"),
        (Algo::BLOCK, "block"),
        (Algo::TILE, "tile"),
        (Algo::CLUSTER, "cluster"),
        (Algo::GRID, "grid"),
        (Algo::COLUMN, "column"),
        (Algo::REFERENCE, "reference"),
    ] {
        assert_eq!(algo.name(), Some(name));
        assert_eq!(Algo::from_name(name).unwrap(), algo);
        assert_eq!(Algo::from_name(&name.to_uppercase()).unwrap(), algo);
    }
    assert_eq!(Algo(999).name(), None);
    for wrong in ["", "fastest", "naive\0", "auto\0x"] {
        let error = Algo::from_name(wrong).expect_err(wrong);
        assert_eq!(error.status(), sys::SOFTMAX_STATUS_BAD_ENUM);
    }
}

#[test]
fn versions_agree() {
    assert_eq!(softmax::version(), sys::HEADER_VERSION);
    assert_eq!(softmax::version(), env!("CARGO_PKG_VERSION"));
    assert!(softmax::build_info().contains(softmax::version()));
    let number = sys::SOFTMAX_VERSION_MAJOR * 10000
        + sys::SOFTMAX_VERSION_MINOR * 100
        + sys::SOFTMAX_VERSION_PATCH;
    assert_eq!(unsafe { sys::softmax_version() }, number);
}
