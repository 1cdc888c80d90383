//! Results of the safe layer against a float64 reference, within the header's bounds.
use softmax::{Algo, Bf16, Device, Element, Handle, Op, StoredAs, F16};

/// A few digits of a counter, spread: enough to make rows that differ.
fn noise(k: usize) -> f64 {
    let mut bits = (k as u32).wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    bits = (bits ^ bits >> 15).wrapping_mul(0x2c1b_3c6d);
    f64::from(bits ^ bits >> 13) / 4_294_967_296.0
}

fn reference(row: &[f64], op: Op) -> Vec<f64> {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut lost) = (0.0, 0.0); // Kahan's sum: as good as exact at these lengths
    for term in row.iter().map(|x| (x - max).exp()) {
        let next: f64 = sum + (term - lost);
        lost = (next - sum) - (term - lost);
        sum = next;
    }
    let value = |x: &f64| match op {
        Op::Softmax => (x - max).exp() / sum,
        Op::LogSoftmax => (x - max) - sum.ln(),
    };
    row.iter().map(value).collect()
}

/// A type as this test sees it: conversions, and bits of precision.
trait Tested: Element {
    const BITS: i32;
    const MIN_EXPONENT: i32; // of a normal number
    const BOUND_ULP: f64;
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

macro_rules! tested {
    ($type:ty, $bits:expr, $min_exponent:expr, $bound:expr, $from:expr, $to:expr) => {
        impl Tested for $type {
            const BITS: i32 = $bits;
            const MIN_EXPONENT: i32 = $min_exponent;
            const BOUND_ULP: f64 = $bound;
            fn from_f64(value: f64) -> Self {
                $from(value)
            }
            fn to_f64(self) -> f64 {
                $to(self)
            }
        }
    };
}
tested!(f32, 24, -126, 4.0, |v| v as f32, f64::from);
// The reference is float64 itself: its own roundings come on top of the bound of 4.
tested!(f64, 53, -1022, 6.0, |v| v, |v| v);
tested!(F16, 11, -14, 0.51, |v| F16::from_f32(v as f32), |v: F16| {
    f64::from(v.to_f32())
});
tested!(
    Bf16,
    8,
    -126,
    0.51,
    |v| Bf16::from_f32(v as f32),
    |v: Bf16| { f64::from(v.to_f32()) }
);

/// The error in units in the last place of Y; infinite for NaN, so that no comparison passes it.
fn error_ulp<Y: Tested>(found: Y, expected: f64) -> f64 {
    let found = found.to_f64();
    if !found.is_finite() {
        return f64::INFINITY;
    }
    let exponent = (expected.abs().log2().floor() as i32).max(Y::MIN_EXPONENT);
    (found - expected).abs() / 2f64.powi(exponent - Y::BITS + 1)
}

fn compare<X: Tested + StoredAs<Y>, Y: Tested>(
    handle: &Handle,
    algo: Algo,
    rows: usize,
    cols: usize,
) {
    let x: Vec<X> = (0..rows * cols)
        .map(|k| X::from_f64(noise(k) * 6.0 - 3.0))
        .collect();
    for op in [Op::Softmax, Op::LogSoftmax] {
        let mut y = vec![Y::from_f64(-7.0); rows * cols];
        let call = handle.with(algo);
        match op {
            Op::Softmax => call.softmax_to(&x, &mut y, rows, cols).unwrap(),
            Op::LogSoftmax => call.log_softmax_to(&x, &mut y, rows, cols).unwrap(),
        }
        for (x, y) in x.chunks(cols).zip(y.chunks(cols)) {
            let x: Vec<f64> = x.iter().map(|v| v.to_f64()).collect();
            for (found, expected) in y.iter().zip(reference(&x, op)) {
                let error = error_ulp(*found, expected);
                assert!(
                    error <= Y::BOUND_ULP,
                    "{:?} {}x{}: {} ulp",
                    op,
                    rows,
                    cols,
                    error
                );
            }
        }
    }
}

const SHAPES: [(usize, usize); 5] = [(1, 2), (3, 5), (7, 33), (2, 1000), (5, 257)];

#[test]
fn every_pair_of_types_is_within_the_bound() {
    let handle = Handle::new(Device::Cpu).unwrap();
    for (rows, cols) in SHAPES {
        compare::<f32, f32>(&handle, Algo::AUTO, rows, cols);
        compare::<f64, f64>(&handle, Algo::AUTO, rows, cols);
        compare::<F16, F16>(&handle, Algo::AUTO, rows, cols);
        compare::<Bf16, Bf16>(&handle, Algo::AUTO, rows, cols);
        compare::<F16, f32>(&handle, Algo::AUTO, rows, cols);
        compare::<Bf16, f32>(&handle, Algo::AUTO, rows, cols);
    }
}

#[test]
fn every_cpu_algorithm_is_within_the_bound() {
    let handle = Handle::new(Device::Cpu).unwrap();
    for algo in [Algo::NAIVE, Algo::VECTOR, Algo::ONLINE, Algo::REFERENCE] {
        compare::<f32, f32>(&handle, algo, 3, 129);
    }
}

#[test]
fn in_place_and_out_of_place_have_the_same_bits() {
    let handle = Handle::new(Device::Cpu).unwrap();
    let x: Vec<f32> = (0..15).map(|k| noise(k) as f32).collect();
    for log in [false, true] {
        let (mut y, mut z) = (vec![0.0; 15], x.clone());
        if log {
            handle.log_softmax_to(&x, &mut y, 3, 5).unwrap();
            handle.log_softmax_in_place(&mut z, 3, 5).unwrap();
        } else {
            handle.softmax_to(&x, &mut y, 3, 5).unwrap();
            handle.softmax_in_place(&mut z, 3, 5).unwrap();
        }
        assert_eq!(y, z);
    }
}

/// A wrong width of M or N in a declaration shows where the upper halves of registers and stack
/// slots hold ones (Twinklebear/oidn-rs#21).
#[test]
fn counts_arrive_whole_with_ones_all_over_registers_and_stack() {
    #[inline(never)]
    fn fill(depth: usize, a: u64, b: u64, c: u64, d: u64, e: u64) -> u64 {
        let mut local = [0u64; 64];
        for slot in &mut local {
            unsafe { std::ptr::write_volatile(slot, a & b & c & d & e) };
        }
        if depth == 0 {
            return local.iter().fold(a, |all, one| all & one);
        }
        fill(depth - 1, a, b, c, d, e) & local[depth]
    }
    let ones = u64::MAX;
    let handle = Handle::new(Device::Cpu).unwrap();
    let mut data = [1.0f32; 15];
    assert_eq!(fill(20, ones, ones, ones, ones, ones), ones);
    handle.softmax_in_place(&mut data, 3, 5).unwrap();
    assert_eq!(data, [0.2; 15]);
}

#[test]
fn edge_rows_follow_the_header() {
    let handle = Handle::new(Device::Cpu).unwrap();
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let mut data = [0.0, nan, 0.0, inf, -inf, 1.0, -inf, -inf];
    handle.softmax_in_place(&mut data, 4, 2).unwrap();
    for k in [0, 1, 2, 3, 6, 7] {
        assert!(data[k].is_nan());
    }
    assert_eq!(data[4..6], [0.0, 1.0]);
}

#[test]
fn device_pointers_on_a_cpu_handle_are_host_pointers() {
    let handle = Handle::new(Device::Cpu).unwrap();
    let mut data = [0.0f64; 4];
    let pointer = data.as_mut_ptr();
    let call = handle.with(Algo::AUTO);
    unsafe { call.softmax_device(pointer as *const f64, pointer, 1, 4, std::ptr::null_mut()) }
        .unwrap();
    assert_eq!(data, [0.25; 4]);
    unsafe { call.log_softmax_device(pointer as *const f64, pointer, 1, 4, std::ptr::null_mut()) }
        .unwrap();
    assert!((data[0] + 4f64.ln()).abs() < 1e-15);
}
