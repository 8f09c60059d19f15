"""The figures and the report. Drawing takes a second a figure, so what only concerns the tables is
asked of the report without its figures."""

import contextlib
import io
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "plots"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import examples  # noqa: E402
from lockstep_plots import report  # noqa: E402
from lockstep_plots.__main__ import main  # noqa: E402
from lockstep_plots.curves import build_curves  # noqa: E402
from lockstep_plots.records import read_records  # noqa: E402


def call(*arguments):
    """(exit code, stdout, stderr) of the command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(a) for a in arguments])
    return code, out.getvalue(), err.getvalue()


def figure_files(*names):
    return {f"{name}.{form}" for name in names for form in ("png", "svg", "pdf")}


def cells(html):
    """The text of each row of each table, cells parted by "|"."""
    rows = re.findall(r"<tr.*?</tr>", html)
    return ["|".join(re.sub(r"<[^>]*>", "", c) for c in re.findall(r"<t[hd].*?</t[hd]>", row))
            for row in rows]


class InFolder(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = Path(held.name)
        self.out = self.folder / "made" / "out"

    def draw(self, **documents):
        """Draws the documents; returns the report."""
        code, said, err = call(*examples.write(self.folder, **documents), "-o", self.out)
        self.assertEqual((code, err), (0, ""))
        self.assertIn("report.html", said)
        return (self.out / "report.html").read_text(encoding="utf-8")

    def tables(self, **documents):
        """The report of the documents without its figures."""
        records = read_records(examples.write(self.folder, **documents))
        return report.page("title", records, build_curves(records), {}).decode("utf-8")

    def names(self):
        return set(os.listdir(self.out))


class Figures(InFolder):
    def test_the_demo_gives_every_figure_and_a_report_with_its_numbers(self):
        html = self.draw(**examples.demo())
        self.assertEqual(self.names(), {"report.html"} | figure_files(
            "scaling", "breakdown", "accuracy", "errors", "timeline", "bandwidth"))
        start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF", "html": b"<!DOCTYPE"}
        for path in self.out.iterdir():
            data = path.read_bytes()
            self.assertTrue(data.startswith(start[path.suffix[1:]]), path.name)
            self.assertNotIn(b"CreationDate", data)
            if path.suffix == ".svg":
                xml.etree.ElementTree.fromstring(data)
        self.assertEqual(html.count("<img "), 6)
        self.assertEqual(re.findall(r'alt="(?:One|Bus)[^"]*', html), [
            'alt="One step of 2 workers: simulated 13.0 ms, measured 13.7 ms',
            'alt="Bus bandwidth, at best: all_reduce 1.05 GB/s (n = 2), broadcast 1.05 GB/s '
            '(n = 2)'])
        self.assertEqual(re.findall(r'(?:src|srcset|href)="(?!data:)[^"]*', html), [])
        self.assertNotIn("@import", html)
        self.assertNotIn("<script", html)

    def test_a_single_point(self):
        for name, document in (("one", examples.result(workers=(1,))),
                               ("four", examples.result(workers=(4,)))):
            with self.subTest(name):
                self.draw(r=document)
                self.assertEqual(self.names(),
                                 {"report.html"} | figure_files("scaling", "breakdown"))

    def test_a_hundred_points(self):
        html = self.draw(r=examples.result(workers=range(1, 101)))
        self.assertEqual(sum("\u2013" in row for row in cells(html)), 100 + 1)  # and the head

    def test_a_hundred_errors_go_on_pages(self):
        points = [examples.validation_point(batch=b, workers=n, error=0.001 * b)
                  for b in range(1, 26) for n in (1, 2, 4, 8)]
        self.draw(v=examples.validation(examples.group("cpu", *points)))
        self.assertEqual(self.names(), {"report.html"} | figure_files(
            "accuracy", "errors", "errors-2", "errors-3"))

    def test_runs_alone_and_a_calibration_alone(self):
        self.draw(u=examples.runs(examples.run(workers=1), examples.run()))
        self.assertEqual(self.names(), {"report.html"} | figure_files("scaling"))
        (self.out / "report.html").unlink()
        html = self.draw(c=examples.calibration())
        self.assertIn("cpu-2-cores", html)

    def test_a_group_of_errors_stays_on_one_page_where_it_can(self):
        from lockstep_plots.accuracy import pages
        sizes = [[len(page), len({g for g, _ in page})] for page in pages(
            [("a", 0)] * 25 + [("b", 0)] * 10 + [("c", 0)] * 8 + [("d", 0)] * 90)]
        self.assertEqual(sizes, [[35, 2], [8, 1], [40, 1], [40, 1], [10, 1]])

    def test_ticks_stand_at_numbers_that_are_there_and_never_touch(self):
        from lockstep_plots.style import thinned
        self.assertEqual(thinned([1, 2, 4, 8, 16, 64, 256], math.log2, 1.7),
                         [1, 2, 4, 8, 16, 64, 256])
        self.assertEqual(thinned(list(range(1, 101)), float, 6.6),
                         [1, *range(5, 100, 5), 100])
        self.assertEqual(thinned([1, 3, 7], float, 3), [1, 3, 7])
        kept = thinned(list(range(1, 101)), math.log2, 1.7)
        self.assertNotIn(64, kept)  # its label would touch that of 100
        self.assertEqual(kept[-2:], [32, 100])


    def test_measured_points_outside_the_prediction_are_inside_the_axes(self):
        from lockstep_plots import scaling, style
        records = read_records(examples.write(self.folder, r=examples.result(), u=examples.runs(
            examples.run(workers=1, factors=(1,)), examples.run(factors=(0.3, 0.4)))))
        with style.settings():
            (fig,) = scaling.figures(build_curves(records))
        axis = fig.axes[2]
        fastest = 64 / (0.3 * 1.1 * 0.74624)  # samples / s, the upper end of the bar
        self.assertGreater(axis.get_ylim()[1], fastest)


class Collectives(InFolder):
    def test_a_schedule_becomes_a_figure_with_its_numbers(self):
        html = self.draw(ring=examples.schedule())
        self.assertEqual(self.names(), {"report.html"} | figure_files("collective"))
        self.assertIn('alt="all-reduce, ring: 4 ranks, 61.04 MiB, 6 steps, 96.0 ms"', html)
        # A rank sends six chunks of 16 MB.
        self.assertIn("all_reduce|ring|4|61.04 MiB|6|24|91.55 MiB|96.0", cells(html))

    def test_without_times_arrows_go_by_steps(self):
        html = self.draw(ring=examples.schedule(timed=False))
        self.assertIn('alt="all-reduce, ring: 4 ranks, 61.04 MiB, 6 steps"', html)

    def test_every_arrow_goes_from_its_sender_to_its_receiver_with_its_chunk(self):
        from lockstep_plots import collective, style
        records = read_records(examples.write(self.folder, ring=examples.schedule(ranks=3)))
        with style.settings():
            (fig,) = collective.figures(records.schedules)
        (axis,) = fig.axes
        arrows = [(a.xyann, a.xy) for a in axis.texts if hasattr(a, "xyann")]
        self.assertEqual(len(arrows), 12)
        self.assertIn(((0, 0), (16, 1)), arrows)
        self.assertIn(((48, 2), (64, 0)), arrows)
        labels = [t.get_text() for t in axis.texts if t.get_text()]
        self.assertEqual(sorted(labels), sorted("012" * 4))

    def test_many_ranks_and_messages_are_drawn_in_time(self):
        html = self.draw(ring=examples.schedule(ranks=40))
        self.assertIn("the first 16 are shown", html)

    def test_chunk_labels(self):
        ring = examples.schedule()
        rows = ring["messages"]["rows"]
        rows[0][3:5] = [3, 2]
        (found,) = read_records(examples.write(self.folder, r=ring)).schedules
        self.assertEqual(found.label(found.messages[0]), "3\u20130")
        self.assertEqual(found.label(found.messages[1]), "1")
        rows[0][3:5] = [9, 1]
        exchange = examples.schedule(collective="all_to_all", algorithm="pairwise",
                                     chunks=[1] * 16)
        exchange["messages"]["rows"][0][3] = 9
        (found,) = read_records(examples.write(self.folder, a=exchange)).schedules
        self.assertEqual(found.label(found.messages[0]), "2>1")

    def test_bad_schedules_are_refused_in_one_line(self):
        def bad(change):
            ring = examples.schedule()
            change(ring["messages"]["rows"])
            return ring
        cases = {
            "names a rank that is not there; the last is 3": bad(lambda r: r[5].__setitem__(2, 4)),
            "names a chunk that is not there": bad(lambda r: r[5].__setitem__(3, 4)),
            "ends before it starts": bad(lambda r: r[5].__setitem__(7, 10**9)),
            "is not 9 whole numbers": bad(lambda r: r[5].pop()),
        }
        for said, document in cases.items():
            with self.subTest(said):
                code, _, err = call(*examples.write(self.folder, x=document), "-o", self.out)
                self.assertEqual((code, err.count("\n")), (2, 1))
                self.assertIn(said, err)
                self.assertIn("/messages/rows/5", err)


class Report(InFolder):
    def test_the_numbers_of_the_demo(self):
        html = self.tables(**examples.demo())
        # counted are the 3 stable points with n = 2: (3.4 + 6.2 + 11.7) / 3 = 7.1
        self.assertIn("cpu|8|3|7.1 %|11.7 %|2", cells(html))
        # predicted 22 ms x (32 + 1.92) = 746.24 ms; measured at the calibration's speed
        # 746.24 / (1 - 0.117) = 845.1, as it was 10 % more: 929.6; the error is a miss
        self.assertIn("vgg11, ddp|2|32|\u221211.7 %|miss|746|930|845|4.0 %|measured|host",
                      cells(html))
        for text in ("2-core virtual machine", "2026-01-02T03:04:05Z", "torch 2.11.0",
                     "lockstep-measure --models small_cnn,vgg11", "all_reduce over loopback",
                     "relative L2 of 3.1e-07"):
            self.assertIn(text, html)

    def test_measured_points_are_normalised_by_the_speed_index(self):
        # Repeats 0.98, 1.01, 1.04 x 746.24 ms, each measured while the reference kernel took
        # 1.1 ms instead of the calibration's 1.0: normalised median 753.7, error 1 / 1.01 - 1.
        html = self.tables(r=examples.result(), u=examples.run(), c=examples.calibration())
        row = next(r for r in cells(html) if "754 731\u2013776" in r)
        self.assertIn("|\u22121.0 %|", row)
        # without the calibration the times stay as they were, and the report says so
        raw = self.tables(r=examples.result(), u=examples.run())
        self.assertTrue(any("829 804\u2013854" in r for r in cells(raw)))
        self.assertIn("not corrected for drift", raw)

    def test_times_on_gpus_stay_as_they_are(self):
        machine = {**examples.origin()["machine"], "gpus": [
            {"name": "H100", "uuid": "", "sm_clock_mhz": 1980, "power_w": 400, "throttle": ""}]}
        html = self.tables(r=examples.result(), u=examples.run(),
                           c=examples.calibration(machine=machine))
        self.assertTrue(any("829 804\u2013854" in r for r in cells(html)))
        self.assertNotIn("not corrected for drift", html)

    def test_a_configuration_measured_twice_pools_its_repeats(self):
        # medians 0.98, 1.01, 1.04, 1.10 x 746.24 ms: median 1.025 x, from 0.98 to 1.10
        html = self.tables(r=examples.result(), c=examples.calibration(), u=examples.runs(
            examples.run(), examples.run(factors=(1.10,))))
        self.assertTrue(any("765 731\u2013821" in r for r in cells(html)))

    def test_a_measured_speed_up_needs_a_measured_single_worker(self):
        # speed-up = 2 x 704 / (1.01 x 746.24) = 1.868 when n = 1 took what was predicted
        both = [examples.run(workers=1, factors=(1, 1, 1)), examples.run()]
        based = self.tables(r=examples.result(), u=examples.runs(*both), c=examples.calibration())
        self.assertTrue(any("|1.89|1.87|" in r for r in cells(based)))
        alone = self.tables(r=examples.result(), u=both[1], c=examples.calibration())
        self.assertFalse(any("|1.89|1.87|" in r for r in cells(alone)))
        self.assertTrue(any("754 731\u2013776" in r for r in cells(alone)))

    def test_only_like_runs_stand_beside_a_prediction(self):
        shown = "measured step, ms"
        self.assertIn(shown, self.tables(r=examples.result(), u=examples.run()))
        for change in ({"sync": "none"}, {"graph": True}, {"precision": "bf16"},
                       {"calibration": "another visit"}, {"model": "small_cnn"},
                       {"batch_per_worker": 16}):
            with self.subTest(change):
                html = self.tables(r=examples.result(), u=examples.run(**change))
                self.assertNotIn(shown, html)

    def test_a_summary_for_each_group_of_a_validation(self):
        html = self.tables(v=examples.validation(
            examples.group("graph", examples.validation_point(error=0.012, graph=True)),
            examples.group("host_bound", examples.validation_point(error=-0.06))))
        self.assertIn("graph|1|1|1.2 %|1.2 %|0", cells(html))
        self.assertIn("host_bound|1|1|6.0 %|6.0 %|1", cells(html))

    def test_a_validation_gives_results_their_measured_points(self):
        html = self.tables(r=examples.result(), v=examples.validation(
            examples.group("cpu", examples.validation_point(error=-0.031, spread=0.04))))
        # 746.24 / 0.969 = 770.1, half the spread on either side: 754.7 and 785.5
        self.assertTrue(any("770 755\u2013786" in r for r in cells(html)))

    def test_without_measured_runs_the_report_says_so(self):
        html = self.tables(r=examples.result(workers=(1, 2, 4, 256)))
        self.assertIn("No measured run", html)
        self.assertTrue(any(r.endswith("|extrapolated|host") for r in cells(html)))

    def test_nothing_to_compare(self):
        html = self.tables(v=examples.validation(examples.group("empty")), u=examples.run(
            repeats=[], failure={"rank": 1, "what": "killed <9>", "after_steps": 4}))
        self.assertIn("empty|0|0|||0", cells(html))
        self.assertIn("killed &lt;9&gt;", html)

    def test_strong_scaling_of_a_batch_that_does_not_divide(self):
        # 32 samples over 3 workers: 11 on the fullest, yet 32 a step, not 33
        run = examples.run(workers=3, batch=11, factors=(1, 1, 1))
        html = self.tables(r=examples.result(workers=(1, 3), weak=False), u=run,
                           c=examples.calibration())
        # step 22 ms x (11 + 1.92 x log2 3) = 308.9 ms: 32 / 0.3089 s = 103.6 samples a second
        self.assertTrue(any("|104|" in row for row in cells(html)))

    def test_names_are_text_not_markup(self):
        html = self.tables(r={**examples.result(), "model": "<b>&", "calibration": "<i>"},
                           c=examples.calibration(id="<i>"))
        self.assertNotIn("<i>", html)
        self.assertIn("&lt;i&gt;", html)
        self.assertIn("&lt;b&gt;&amp;", html)


class Bandwidth(InFolder):
    def panels(self, **documents):
        from lockstep_plots import bandwidth
        return bandwidth.panels(read_records(examples.write(self.folder, **documents)))

    def test_bus_bandwidth_is_that_of_nccl_tests(self):
        from lockstep_plots.bandwidth import bus_factor
        # 1 MiB on 4 workers in 1 ms: 1.048576 GB/s times 2 x 3/4, 1, 3/4; of gather and scatter,
        # whose 1 MiB is one worker's, 4 MiB x 3/4
        factors = {"all_reduce": 1.5, "broadcast": 1, "reduce": 1, "all_gather": 0.75,
                   "reduce_scatter": 0.75, "all_to_all": 0.75, "gather": 3, "scatter": 3}
        self.assertEqual({name: bus_factor(name, 4) for name in factors}, factors)
        for name, factor in factors.items():
            (panel,) = self.panels(c=examples.calibration(collectives=[examples.table(name, 4)]))
            self.assertAlmostEqual(panel.model[4][1].bus, 1.048576 * factor)
            self.assertAlmostEqual(panel.model[4][1].high, 1.048576 * factor / 0.9)
            self.assertAlmostEqual(panel.model[4][1].low, 1.048576 * factor / 1.25)

    def test_measured_points_are_at_the_calibrations_speed(self):
        measured = examples.measurement(examples.table(), examples.table())
        (panel,) = self.panels(m=measured)
        self.assertEqual((len(panel.measured[2]), panel.model), (2, {}))
        self.assertAlmostEqual(panel.measured[2][0][1].bus, 1.048576)
        # the reference kernel took 1.1 of the calibration's time: so did the collective
        (panel,) = self.panels(m=measured, c=examples.calibration(collectives=[examples.table()]))
        self.assertAlmostEqual(panel.measured[2][0][1].bus, 1.1 * 1.048576)
        self.assertAlmostEqual(panel.model[2][1].bus, 1.048576)
        # a GPU's clock is its own; and another visit's calibration says nothing about this one
        gpus = {**examples.origin()["machine"], "gpus": [{"name": "GPU"}]}
        (panel,) = self.panels(m=measured, c=examples.calibration(machine=gpus))
        self.assertAlmostEqual(panel.measured[2][0][1].bus, 1.048576)
        (panel,) = self.panels(m=measured, c=examples.calibration(id="another"))
        self.assertAlmostEqual(panel.measured[2][0][1].bus, 1.048576)

    def test_a_panel_for_each_collective_and_topology(self):
        tables = [examples.table(), examples.table(workers=4), examples.table("gather"),
                  examples.table(topology="2 hosts"), examples.table(workers=1),
                  examples.table("scatter", ns=((0, 5000), (1024, 0)))]
        found = self.panels(c=examples.calibration(collectives=tables))
        self.assertEqual([(p.name, p.counts()) for p in found], [
            ("all_reduce, gloo, ring, one host", [2, 4]), ("gather, gloo, ring, one host", [2]),
            ("all_reduce, gloo, ring, 2 hosts", [2])])
        self.assertEqual(found[0].dots(4), [found[0].model[4]])  # nobody measured: its own points

    def test_the_table_of_the_report(self):
        html = self.tables(m=examples.measurement(
            examples.table(), examples.table(ns=((1024, 12_000), (1048576, 2_000_000)))))
        self.assertIn("all_reduce, gloo, ring, one host|2|2|1 KiB|10.0\u201312.0|1 MiB|"
                      "1.00\u20132.00|0.524\u20131.05", cells(html))
        self.assertIn("as they were measured", html)
        self.assertIn("<h3>Measurement cpu-2-cores</h3>", html)


    def test_sizes_that_were_held_out_are_crosses(self):
        table = examples.table(ns=((1024, 10_000), (1048576, 1_000_000)))
        held = examples.table(ns=((524288, 500_000), (600_000, 0)))["points"]
        (panel,) = self.panels(c=examples.calibration(collectives=[{**table, "held_out": held}]))
        self.assertEqual([p.bytes for p in panel.held_out[2]], [524288])  # one took no time
        self.assertAlmostEqual(panel.held_out[2][0].bus, 1.048576)
        self.draw(c=examples.calibration(collectives=[{**table, "held_out": held}]))
        (panel,) = self.panels(c=examples.calibration(collectives=[table]))
        self.assertEqual(panel.held_out, {2: ()})

    def test_the_share_of_the_link_where_it_is_known(self):
        from lockstep_plots.bandwidth import link_bandwidth
        table = examples.table(workers=4, ns=((1024, 10_000), (134217728, 614_940)))
        gpus = {**examples.origin()["machine"], "links": "NVLink, 18 links a pair",
                "gpus": [{"name": "NVIDIA H100 80GB HBM3"}] * 4}
        documents = {"c": examples.calibration(collectives=[table], machine=gpus)}
        # 18 x 25 GB/s; 134217728 B / 614940 ns x 1.5 = 327.4 GB/s
        (panel,) = self.panels(**documents)
        self.assertEqual(panel.link, 450)
        html = self.tables(**documents)
        self.assertTrue(any(row.endswith("|327|72.8 %") for row in cells(html)), cells(html))
        self.draw(**documents)
        for links, card in (("PHB", "H100"), ("NVLink, 18 links a pair", "card of tomorrow"),
                            ("", "")):
            machine = {**gpus, "links": links, "gpus": [{"name": card}]}
            records = read_records(examples.write(self.folder, c=examples.calibration(
                collectives=[table], machine=machine)))
            self.assertIsNone(link_bandwidth(records.calibrations[0].origin))


class Wanted(InFolder):
    def documents(self):
        collective = {**examples.validation_point(workers=2, error=-0.07), "model": "",
                      "strategy": "all_reduce", "batch_per_worker": 0, "bytes": 3 * 2**20}
        sizes = {**examples.group("all_reduce_sizes", collective), "wanted_mean": 0.08,
                 "wanted_worst": 0.05, "held": False}
        few = {**examples.group("extrapolated_n", examples.validation_point(workers=4)),
               "wanted_mean": 0.04, "held": True}
        return {"v": examples.validation(
            examples.group("graph", examples.validation_point(graph=True)), few, sizes)}

    def test_what_is_wanted_of_a_group_and_whether_it_holds(self):
        html = self.tables(**self.documents())
        self.assertIn("extrapolated_n|1|1|3.1 %|3.1 %|0|mean 4.0 %: held", cells(html))
        self.assertIn("all_reduce_sizes|1|1|7.0 %|7.0 %|1|mean 8.0 %, worst 5.0 %: missed",
                      cells(html))
        self.assertIn("graph|1|1|3.1 %|3.1 %|0|", cells(html))
        self.assertTrue(any(row.startswith("all_reduce of 3 MiB|2||\u22127.0 %|miss|")
                            for row in cells(html)), cells(html))

    def test_figures_and_the_answer_are_of_the_other_groups(self):
        from lockstep_plots.accuracy import flat
        records = read_records(examples.write(self.folder, **self.documents()))
        self.assertEqual([group for group, _ in flat(records.validations)], ["graph"])
        self.assertIn("1 measured configurations", self.draw(**self.documents()))


    def test_bounds_alone_keep_no_group_of_steps_out_of_the_figures(self):
        from lockstep_plots.accuracy import flat
        steps = {**examples.group("host_bound", examples.validation_point(workers=2, error=0.07)),
                 "wanted_mean": 0.05, "allowed_mean": 0.08, "held": True, "own_question": False}
        documents = {"v": examples.validation(steps)}
        records = read_records(examples.write(self.folder, **documents))
        self.assertEqual([group for group, _ in flat(records.validations)], ["host_bound"])
        self.assertIn("host_bound|1|1|7.0 %|7.0 %|1|mean 5.0 %: held",
                      cells(self.tables(**documents)))


class Traces(InFolder):
    def read(self, **documents):
        return read_records(examples.write(self.folder, **documents)).traces

    def test_a_trace_says_whose_it_is(self):
        from lockstep_plots.traces import pairs
        traces = self.read(a=examples.trace("measured"), b=examples.trace())
        self.assertEqual([t.source for t in traces], ["measured", "simulated"])
        self.assertEqual(pairs(traces), [(traces[1], traces[0])])  # simulated first
        self.assertEqual(pairs(traces[:1]), [(None, traces[0])])
        both = examples.trace("measured")
        for event in both["traceEvents"]:
            event["pid"] += 2
        both["traceEvents"] += examples.trace()["traceEvents"]
        self.assertEqual([t.source for t in self.read(a=both)], ["simulated", "measured"])

    def test_waiting_ends_when_the_last_worker_has_launched(self):
        # Worker 0 launches its bucket at 8 ms, worker 1 at 9 ms, both are done at 12 ms.
        for source in ("simulated", "measured"):
            (timeline,) = self.read(a=examples.trace(source))
            shown = {w: [(b.kind, b.name, b.start / 1e6, b.end / 1e6)
                         for b in timeline.lanes[w, "communication"]] for w in (0, 1)}
            self.assertEqual(shown, {
                0: [("waiting", "bucket 0", 8, 9), ("transfer", "bucket 0", 9, 12)],
                1: [("transfer", "bucket 0", 9, 12)]})
            self.assertEqual(timeline.end, 13e6)

    def test_buckets_are_numbered(self):
        from lockstep_plots.timeline import numbers
        from lockstep_plots.traces import Bar
        bars = [Bar("buffers", "buffers", 0, 1), Bar("transfer", "bucket 1", 1, 2),
                Bar("transfer", "bucket 0", 2, 3)]
        self.assertEqual(numbers(bars), {"bucket 1": 1, "bucket 0": 0})
        bars = [Bar("transfer", f"{what} {name}.weight", 0, 1) for name in ("conv", "fc")
                for what in ("gather", "scatter")]
        self.assertEqual(numbers(bars), {"conv.weight": 0, "fc.weight": 1})

    def test_lanes_of_the_first_workers(self):
        from lockstep_plots import style, timeline
        with style.settings():
            (fig,) = timeline.figures(self.read(a=examples.trace(workers=6)))
        labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
        self.assertEqual(labels[:3] + labels[-2:], [
            "worker 0 compute", "communication", "worker 1 compute", "worker 3 compute",
            "communication"])
        self.assertIn("6 workers", style.said(fig))
        self.assertIn("the first 4 are shown", style.said(fig))

    def test_the_table_of_the_report(self):
        html = self.tables(a=examples.trace(), b=examples.trace("measured"))
        for source in ("simulated", "measured"):
            self.assertIn(f"{source}|0|4.00|4.00|1.00|3.00|1.00|13.0", cells(html))
        self.assertIn("trace, simulated", html)


class Repeatable(InFolder):
    def test_the_same_bytes_in_another_process(self):
        documents = {"r": examples.result(workers=(1, 2)), "u": examples.run(),
                     "v": examples.validation(examples.group("g", examples.validation_point())),
                     "t": examples.trace()}
        self.draw(**documents)
        again = self.folder / "again"
        subprocess.run([sys.executable, "-m", "lockstep_plots",
                        *(self.folder / f"{name}.json" for name in documents), "-o", again],
                       check=True, capture_output=True, cwd=self.folder,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "plots"),
                            "PYTHONHASHSEED": "7"})
        self.assertEqual(self.names(), set(os.listdir(again)))
        self.assertEqual([n for n in sorted(self.names())
                          if (self.out / n).read_bytes() != (again / n).read_bytes()], [])


class BadInput(InFolder):
    def refused(self, *paths):
        """The one line on stderr; nothing was written."""
        code, said, err = call(*paths, "-o", self.out)
        self.assertEqual((code, said), (2, ""), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertFalse(self.out.parent.exists())
        self.assertTrue(err.startswith("lockstep: "), err)
        return err.removeprefix("lockstep: ")

    def refused_document(self, document, good=True):
        paths = examples.write(self.folder, bad=document, **(
            {"good": examples.result()} if good else {}))
        return self.refused(*reversed(paths)).removeprefix(f"{self.folder}/bad.json")

    def test_missing_file(self):
        self.assertIn("none.json: cannot be read", self.refused(self.folder / "none.json"))

    def test_folder(self):
        self.assertIn("cannot be read", self.refused(self.folder))

    def test_empty_truncated_and_not_text(self):
        path = self.folder / "bad.json"
        text = json.dumps(examples.result(), indent=1)
        for data, said in ((b"", "is empty"), (b" \n", "is empty"), (text[:700].encode(), ":"),
                           (b"\xff\xfe{}", "UTF-8"), (b"[" * 100000, "not JSON"),
                           (b"1" * 5000, "not JSON"), (b"[]", "/: [] is not an object")):
            with self.subTest(data[:10]):
                path.write_bytes(data)
                self.assertIn(said, self.refused(path))

    def test_truncated_says_line_and_column(self):
        path = self.folder / "bad.json"
        path.write_text('{"format": 1,\n "kind": ')
        self.assertRegex(self.refused(path), r"bad\.json:2:\d+: is not JSON")

    def test_wrong_kind_and_unknown_format(self):
        self.assertIn(': /kind: kind "trace"', self.refused_document(
            {"format": 1, "kind": "trace"}))
        self.assertIn('key "id" is missing', self.refused_document(
            {"format": 1, "kind": "measurement", "collectives": []}))
        self.assertIn(": /format: format 2", self.refused_document({"format": 2, "kind": "result"}))
        self.assertIn('key "format" is missing', self.refused_document({"kind": "result"}))
        self.assertIn('key "kind" is missing', self.refused_document({"format": 1}))

    def test_every_key_of_a_record_that_is_read_is_needed(self):
        documents = {"result": examples.result(), "run": examples.run(),
                     "validation": examples.validation(
                         examples.group("g", examples.validation_point())),
                     "calibration": examples.calibration(),
                     "measurement": examples.measurement(examples.table())}
        unread = {"dataset", "ranks", "structures", "copies", "interference",
                  "cores", "launch_queue", "parity", "failure"}
        for kind, document in documents.items():
            for key in document.keys() - unread:
                with self.subTest(kind=kind, key=key):
                    broken = {k: v for k, v in document.items() if k != key}
                    self.assertIn(f'key "{key}" is missing', self.refused_document(broken))

    def test_wrong_values_are_named_by_pointer(self):
        for key, value, said in (
                ("workers", 0, "/points/1/workers: 0 is too small"),
                ("workers", 1.5, "/points/1/workers: 1.5 is not a whole number"),
                ("workers", "2", '/points/1/workers: "2" is not a number'),
                ("workers", True, "/points/1/workers: true is not a number"),
                ("throughput", float("nan"), "/points/1/throughput: the number is not finite"),
                ("throughput", float("inf"), "/points/1/throughput: the number is not finite"),
                ("throughput", 10**400, "/points/1/throughput: the number is not finite"),
                ("throughput", -1, "/points/1/throughput: -1 is too small"),
                ("speedup", None, "/points/1/speedup: null is not a number"),
                ("basis", "guessed", '/points/1/basis: "guessed" is not known'),
                ("host_bound", 1, "/points/1/host_bound: 1 is not a flag"),
                ("strategy", 3, "/points/1/strategy: 3 is not text"),
                ("step_ns", 3, "/points/1/step_ns: 3 is not an object"),
                ("step_ns", {}, '/points/1/step_ns: key "mean" is missing')):
            with self.subTest(key=key, value=str(value)[:10]):
                document = examples.result()
                document["points"][1][key] = value
                self.assertIn(said, self.refused_document(document))
        self.assertIn("/points: has no points", self.refused_document(
            examples.result(points=[])))

    def test_wrong_collectives_are_named_by_pointer(self):
        for key, value, said in (
                ("collective", "all_hands", '/collectives/0/table/collective: "all_hands" is not'),
                ("workers", 0, "/collectives/0/table/workers: 0 is too small"),
                ("points", {}, "/collectives/0/table/points: {} is not an array"),
                ("points", [{"bytes": -1}], '/points/0: key "device_ns" is missing'),
                ("points", [{"bytes": -1, "device_ns": {}}], "/points/0/bytes: -1 is too small"),
                ("points", [{"bytes": 1, "device_ns": {"p10": 1}}],
                 '/points/0/device_ns: key "p50" is missing')):
            with self.subTest(key=key, value=value):
                self.assertIn(said, self.refused_document(
                    examples.measurement(examples.table(**{key: value}))))

    def test_bad_traces(self):
        def changed(index, **changes):
            trace = examples.trace()
            trace["traceEvents"][index].update(changes)
            return trace

        for document, said in (
                ({"traceEvents": 3}, "/traceEvents: 3 is not an array"),
                ({"traceEvents": []}, "/traceEvents: holds no span"),
                ({"traceEvents": [{}]}, '/traceEvents/0: key "ph" is missing'),
                (changed(0, args={"name": "python 3"}),
                 '/traceEvents/0/args/name: "python 3" is neither'),
                (changed(4, pid=7), "/traceEvents/4/pid: has no name"),
                (changed(4, tid=7), "/traceEvents/4/tid: has no name"),
                (changed(4, ts=-1), "/traceEvents/4/ts: -1 is too small"),
                (changed(4, dur="1"), '/traceEvents/4/dur: "1" is not a number'),
                (examples.trace(scale=0), "/traceEvents: its spans last no time")):
            with self.subTest(said):
                self.assertIn(said, self.refused_document(document))

    def test_traces_of_different_steps(self):
        paths = examples.write(self.folder, a=examples.trace(), b=examples.trace("measured", 4),
                               c=examples.trace("measured", layers=("other",)))
        self.assertIn("b.json: has 4 workers", self.refused(paths[0], paths[1]))
        self.assertIn("c.json: has other layers", self.refused(paths[0], paths[2]))

    def test_duplicate_key(self):
        path = self.folder / "bad.json"
        text = json.dumps(examples.result())
        path.write_text(text.replace('"fit": 0.02', '"fit": 0.02, "fit": 0.03', 1))
        self.assertIn('/points/0/uncertainty: key "fit" appears twice', self.refused(path))

    def test_a_line_break_in_a_name_stays_one_line(self):
        self.assertIn("tra ce", self.refused_document({"format": 1, "kind": "tra\nce"}))

    def test_a_file_where_the_folder_should_be(self):
        paths = examples.write(self.folder, c=examples.calibration())
        (self.folder / "made").write_text("mine")
        code, _, err = call(*paths, "-o", self.out)
        self.assertEqual((code, err.count("\n")), (2, 1))
        self.assertEqual((self.folder / "made").read_text(), "mine")

    def test_what_was_there_stays_when_writing_fails(self):
        paths = examples.write(self.folder, c=examples.calibration())
        self.out.mkdir(parents=True)
        (self.out / "report.html").mkdir()  # cannot be replaced by a file
        code, _, err = call(*paths, "-o", self.out)
        self.assertEqual((code, err.count("\n")), (3, 1), err)
        self.assertEqual(os.listdir(self.out), ["report.html"])

    def test_no_arguments_is_bad_input(self):
        with self.assertRaises(SystemExit) as stopped, contextlib.redirect_stderr(io.StringIO()):
            main([])
        self.assertEqual(stopped.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
