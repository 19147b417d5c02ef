//! The sums of exchanged values, the update of slices, and the exchange itself: two processes that
//! share one GPU and that NCCL treats as two hosts.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use f2_engine::prelude::*;
use f2_engine::{
    AdamW, Bf16, Cuda, Decay, Device, F32, Layout, Linear, Moments, NORM_BLOCK, NcclId, NcclPeers,
    Parameter, Partition, Precision, Scatter, cuda_is_present, nccl_version,
};

use super::{Bench, Outcome, Scenario, compare, random};

fn parts() -> (Layout, [Parameter; 3]) {
    let mut layout = Layout::new();
    let parameters = [
        layout.add("matrix", &[90, 51], true),
        layout.add("bias", &[21], false),
        layout.add("last", &[301, 40], true),
    ];
    (layout, parameters)
}

/// The buffer of [`parts`] divided among ranks, in one bucket or in several.
fn partition(ranks: usize, several: bool) -> Partition {
    let len = parts().0.len();
    let finals: &[usize] = if several { &[len / 2, len / 4, 0] } else { &[] };
    Partition::new(len, ranks, finals)
}

/// One update by several ranks, each of its own slice, on one device.
struct Sliced {
    ranks: usize,
    several: bool,
}

impl Scenario for Sliced {
    fn layout(&self) -> Layout {
        parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let (layout, parameters) = parts();
        let len = layout.len();
        let partition = partition(self.ranks, self.several);
        let blocks = len.div_ceil(NORM_BLOCK);
        let values = random(len, 3);
        let (mut sums, mut norm) = (bench.floats(2 * blocks), bench.floats(1));
        let upload = |bench: &Bench<D>, rank: usize| {
            let slice = partition.slice(rank).flat_map(|(_, piece)| values[piece].to_vec());
            // The buffer is longer than the slice, whose end must be respected.
            let mut floats = bench.floats(partition.owned(rank) + 9);
            bench.device.write_floats(&slice.collect::<Vec<_>>(), 0, &mut floats);
            floats
        };
        for rank in 0..self.ranks {
            let own = upload(bench, rank);
            for (place, piece) in partition.slice(rank) {
                let at = 2 * piece.start.div_ceil(NORM_BLOCK);
                bench.device.square_sums(place..place + piece.len(), &own, &mut sums, at);
            }
        }
        bench.device.norm_of_sums(blocks, &sums, &mut norm);
        let mut outcome = vec![("norm", bench.read_floats(&norm, 1))];
        let [mut first, mut second] = [0; 2].map(|_| vec![0.0; len]);
        let settings = AdamW {
            learning_rate: 3e-2,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            weight_decay: 0.1,
            decay: Decay::Decoupled,
            clip: 0.25,
            update: 1,
        };
        for rank in 0..self.ranks {
            let owned = partition.owned(rank);
            let floats = || bench.device.floats(owned).unwrap();
            let (mut moments, mut own) =
                (Moments { first: floats(), second: floats() }, upload(bench, rank));
            let decayed = layout.decayed();
            for (at, piece) in partition.slice(rank) {
                let Bench { device, weights, .. } = &mut *bench;
                let (moments, own) = (&mut moments, &mut own);
                device.adamw_piece(settings, &decayed, &norm, piece, at, weights, moments, own);
            }
            assert!(bench.read_floats(&own, owned).iter().all(|gradient| *gradient == 0.0));
            for (moment, all) in [(&moments.first, &mut first), (&moments.second, &mut second)] {
                let read = bench.read_floats(moment, owned);
                for (at, piece) in partition.slice(rank) {
                    all[piece.clone()].copy_from_slice(&read[at..at + piece.len()]);
                }
            }
        }
        outcome.extend([("first moments", first), ("second moments", second)]);
        let weights = parameters.map(|parameter| bench.weight(parameter));
        outcome.extend(["matrix", "bias", "last"].into_iter().zip(weights));
        outcome
    }
}

#[test]
fn slices_are_updated_as_on_the_cpu() {
    compare(&Sliced { ranks: 1, several: false });
    compare(&Sliced { ranks: 3, several: false });
    compare(&Sliced { ranks: 2, several: true });
}

/// Exactly, in either precision.
#[test]
fn slices_of_an_update_give_the_bits_of_the_whole() {
    fn check<P: Precision>() {
        let update = |ranks: usize, several: bool| {
            let device = Cuda::<P>::new(0).unwrap();
            Sliced { ranks, several }.run(&mut Bench::new(device, &parts().0))
        };
        let whole = update(1, false);
        for ranks in 2..=5 {
            assert_eq!(update(ranks, false), whole, "{ranks} ranks");
        }
        assert_eq!(update(2, true), whole);
    }
    if let Err(reason) = cuda_is_present() {
        eprintln!("skipped: {reason}");
        return;
    }
    check::<F32>();
    check::<Bf16>();
}

struct Sums;

impl Scenario for Sums {
    fn layout(&self) -> Layout {
        parts().0
    }

    fn run<D: Device>(&self, bench: &mut Bench<D>) -> Outcome {
        let device = &bench.device;
        let mut from = bench.floats(5000);
        device.write_floats(&random(5000, 8), 0, &mut from);
        let mut to = bench.floats(5000);
        device.copy_floats(&from, 7..4007, &mut to, 5);
        // At aligned and unaligned offsets, with lengths that are not multiples of four.
        device.add_floats(&from, 4..2011, &mut to, 16);
        device.add_floats(&from, 3..1000, &mut to, 2050);
        device.add_within(&mut to, 0..1001, 3000);
        device.add_within(&mut to, 4100..4103, 1);
        let mut sum = bench.floats(2);
        device.add_in_order(3001, &from, &mut sum);
        let mut large = bench.floats(3000);
        device.write_floats(&vec![0.0; 3000], 0, &mut large);
        device.write_floats(&[1e20], 1023, &mut large);
        device.write_floats(&[-1e20, 1.0], 1024, &mut large);
        let mut exact = bench.floats(1);
        device.add_in_order(3000, &large, &mut exact);
        assert_eq!(bench.read_floats(&exact, 1), [1.0]);
        vec![("sums", bench.read_floats(&to, 5000)), ("sum", bench.read_floats(&sum, 2))]
    }
}

#[test]
fn sums_are_those_of_the_cpu() {
    compare(&Sums);
}

/// The environment variables of a process that runs as a rank: its number, and the folder for the
/// id.
const RANK: &str = "F2_PARITY_RANK";
const FOLDER: &str = "F2_PARITY_FOLDER";
const RANKS: usize = 2;

/// All data exchanged by two ranks arrives at the right place.
#[test]
fn two_processes_exchange_over_one_gpu() {
    if let Ok(rank) = std::env::var(RANK) {
        let folder = std::env::var_os(FOLDER).unwrap();
        let (rank, id) = (rank.parse().unwrap(), meet(&rank, Path::new(&folder)));
        check_exchange::<Bf16>(rank, id);
        return;
    }
    if let Err(reason) = cuda_is_present().and_then(|()| nccl_version().map(drop)) {
        eprintln!("skipped: {reason}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let start = |rank: usize| {
        let name = "exchange::two_processes_exchange_over_one_gpu";
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(RANK, rank.to_string())
            .env(FOLDER, folder.path())
            .env("NCCL_HOSTID", format!("rank-{rank}"))
            .spawn()
            .unwrap()
    };
    let ranks: Vec<Child> = (0..RANKS).map(start).collect();
    let mut ended = Vec::new();
    for mut rank in ranks {
        ended.push(wait(&mut rank));
    }
    assert_eq!(ended, [true; RANKS]);
}

/// Waits for a rank, with a time limit.
fn wait(rank: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(120) {
        if let Some(status) = rank.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    rank.kill().unwrap();
    false
}

/// Rank 0 creates the id; the other waits for it.
fn meet(rank: &str, folder: &Path) -> NcclId {
    let (path, whole) = (folder.join("id.tmp"), folder.join("id"));
    if rank == "0" {
        let id = NcclId::new().unwrap();
        fs::write(&path, id.0).unwrap();
        fs::rename(&path, &whole).unwrap();
        return id;
    }
    loop {
        if let Ok(bytes) = fs::read(&whole) {
            return NcclId(bytes.try_into().unwrap());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first rank has two parts, the second has one. Each bucket is written just before it is sent,
/// and the next one during the transfer; the received values must be those at the time of sending.
fn check_scatter<P: Precision>(
    device: &Cuda<P>,
    peers: &mut NcclPeers,
    rank: usize,
    partition: &Partition,
) {
    let (len, owned) = (partition.bucket(0).end, partition.owned(rank));
    let scatter = Scatter { partition, parts: &[2, 1] };
    let part = |row: usize| random(len, row as u32);
    let expected: Vec<f32> = (0..3)
        .flat_map(|row| {
            let values = part(row);
            partition.slice(rank).flat_map(|(_, piece)| values[piece].to_vec()).collect::<Vec<_>>()
        })
        .collect();
    for beside in [false, true] {
        let sources: Vec<_> = scatter
            .rows(rank)
            .map(|row| {
                let mut floats = device.floats(len).unwrap();
                device.write_floats(&part(row), 0, &mut floats);
                floats
            })
            .collect();
        let zeros = || device.floats(len).unwrap();
        let mut parts: Vec<_> = sources.iter().map(|_| zeros()).collect();
        let mut received = device.floats(3 * owned).unwrap();
        // Several times, since the first sets up the second stream.
        for _ in 0..3 {
            for bucket in 0..partition.buckets() {
                let range = partition.bucket(bucket);
                for (from, to) in sources.iter().zip(&mut parts) {
                    device.copy_floats(from, range.clone(), to, range.start);
                }
                let parts: Vec<_> = parts.iter().collect();
                let to = &mut received;
                if beside {
                    device.begin_scatter(peers, &scatter, bucket, &parts, to).unwrap();
                } else {
                    device.scatter(peers, &scatter, bucket, &parts, to).unwrap();
                }
            }
            device.finish_scatters(peers).unwrap();
            // Overwritten immediately: the exchange must have finished.
            parts.iter_mut().for_each(|part| device.zero_floats(part));
            let mut values = vec![0.0; 3 * owned];
            device.read_floats(&received, 0, &mut values).unwrap();
            assert_eq!(values, expected, "beside: {beside}");
            device.zero_floats(&mut received);
        }
    }
}

fn check_exchange<P: Precision>(rank: usize, id: NcclId) {
    let (layout, parameters) = parts();
    let len = layout.len();
    let device = Cuda::<P>::new(0).unwrap();
    let mut peers = device.connect(id, rank, RANKS).unwrap();
    let upload = |values: &[f32]| {
        let mut floats = device.floats(values.len()).unwrap();
        device.write_floats(values, 0, &mut floats);
        floats
    };
    let read = |floats: &_, len: usize| {
        let mut values = vec![0.0; len];
        device.read_floats(floats, 0, &mut values).unwrap();
        values
    };

    for several in [false, true] {
        let partition = partition(RANKS, several);
        check_scatter(&device, &mut peers, rank, &partition);
        let everything = random(len, 9);
        let mut floats = device.floats(len).unwrap();
        for (_, piece) in partition.slice(rank) {
            device.write_floats(&everything[piece.clone()], piece.start, &mut floats);
        }
        device.gather_floats(&mut peers, &partition, &mut floats).unwrap();
        assert_eq!(read(&floats, len), everything);
    }

    // A rank with an empty piece.
    let mut few = upload(if rank == 0 { &[1.0, 2.0] } else { &[0.0; 2] });
    let first = Partition::of_pieces(vec![0..2, 2..2]);
    device.gather_floats(&mut peers, &first, &mut few).unwrap();
    assert_eq!(read(&few, 2), [1.0, 2.0]);

    let (partition, everything) = (partition(RANKS, true), random(len, 9));
    let own = |place: usize| partition.slice(rank).any(|(_, piece)| piece.contains(&place));
    // Parameters, with the rounded copies that products read. Those of other ranks hold -1 at
    // first.
    let mut weights = device.weights(len).unwrap();
    for parameter in parameters {
        let mut values = vec![-1.0; parameter.len()];
        for (place, value) in values.iter_mut().enumerate() {
            if own(parameter.offset + place) {
                *value = everything[parameter.offset + place];
            }
        }
        device.write_weights(&values, parameter, &mut weights);
    }
    device.gather_weights(&mut peers, &partition, &mut weights).unwrap();
    device.gather_full_weights(&mut peers, &partition, &mut weights).unwrap();
    for parameter in parameters {
        let mut values = vec![0.0; parameter.len()];
        device.read_weights(&weights, parameter, &mut values).unwrap();
        assert_eq!(values, everything[parameter.offset..][..parameter.len()]);
    }
    // A product reads the rounded copies, here those of the first column, from both ranks' slices.
    let linear = Linear { weight: parameters[2], bias: parameters[0] };
    let (mut x, mut y) = (device.activations(40).unwrap(), device.activations(301).unwrap());
    device.write_activations(&[1.0], &mut x);
    device.linear(1, linear, &weights, &x, &mut y);
    let mut column = vec![0.0; 301];
    device.read_activations(&y, &mut column).unwrap();
    for (row, value) in column.iter().enumerate() {
        let expected = everything[linear.weight.offset + 40 * row] + everything[row];
        assert!((value - expected).abs() < 0.01 * expected.abs().max(1.0), "row {row}: {value}");
    }
}
