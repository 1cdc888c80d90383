//! Handles between threads: shared, moved, and errors that stay with their thread.
use softmax::{Algo, Device, Handle};
use std::thread;

fn row(index: usize) -> Vec<f32> {
    (0..500)
        .map(|j| ((j * 7 + index * 13) % 31) as f32 / 3.0)
        .collect()
}

#[test]
fn threads_share_one_handle_each_with_its_own_rows() {
    let handle = Handle::new(Device::Cpu).unwrap();
    thread::scope(|scope| {
        for index in 0..8 {
            let handle = &handle;
            scope.spawn(move || {
                let mut expected = row(index);
                Handle::new(Device::Cpu)
                    .unwrap()
                    .softmax_in_place(&mut expected, 5, 100)
                    .unwrap();
                for _ in 0..50 {
                    let mut data = row(index);
                    handle.softmax_in_place(&mut data, 5, 100).unwrap();
                    assert_eq!(data, expected);
                }
            });
        }
    });
}

#[test]
fn a_handle_may_be_moved_to_a_thread_and_dropped_there() {
    let handle = Handle::new(Device::Cpu).unwrap();
    let sum = thread::spawn(move || {
        let mut data = row(0);
        handle.softmax_in_place(&mut data, 1, 500).unwrap();
        data.iter().sum::<f32>()
    });
    assert!((sum.join().unwrap() - 1.0).abs() < 1e-5);
}

#[test]
fn errors_are_each_thread_s_own() {
    let handle = Handle::new(Device::Cpu).unwrap();
    thread::scope(|scope| {
        for index in 0..8 {
            let handle = &handle;
            scope.spawn(move || {
                for _ in 0..100 {
                    let call = handle.with(Algo(5000 + index));
                    let error = call.softmax_in_place(&mut [0.0f32; 4], 2, 2).unwrap_err();
                    assert!(error.sentence().contains(&(5000 + index).to_string()));
                }
            });
        }
    });
}

#[test]
fn many_handles_live_at_once() {
    let handles: Vec<Handle> = (0..100)
        .map(|_| Handle::new(Device::Cpu).unwrap())
        .collect();
    for handle in &handles {
        assert_eq!(handle.device(), Device::Cpu);
        assert!(handle.description().contains("CPU"));
        assert_eq!(format!("{:?}", handle), "Handle { device: Cpu }");
    }
}
