"""The Spack recipe of the tree, without Spack: which options it gives to CMake for which variants."""

import os
import sys
import types

RECIPE = os.path.join(os.environ["LOCKFLIGHT_SOURCE_DIR"], "packaging", "spack", "spack_repo",
                      "lockflight", "packages", "lockflight", "package.py")


class Recipe:
    """What the recipe declares."""

    def __init__(self):
        self.variants = {}
        self.dependencies = []
        self.kind = None
        self.execute()

    def execute(self):
        def variant(name, default, description, when=None):
            self.variants[name] = default

        def depends_on(spec, type=None, when=None):
            self.dependencies.append((spec, when))

        directives = {name: lambda *_, **__: None for name in ["license", "version", "requires"]}
        directives.update(variant=variant, depends_on=depends_on, join_path=os.path.join)
        package = types.ModuleType("spack.package")
        package.__dict__.update(directives, __all__=list(directives))
        cmake = types.ModuleType("spack_repo.builtin.build_systems.cmake")
        cmake.CMakePackage = Package
        modules = {"spack": types.ModuleType("spack"), "spack.package": package}
        name = ""
        for part in cmake.__name__.split(".")[:-1]:
            name = f"{name}.{part}".lstrip(".")
            modules[name] = types.ModuleType(name)
        modules[cmake.__name__] = cmake
        before = {each: sys.modules.get(each) for each in modules}
        sys.modules.update(modules)
        try:
            scope = {"__file__": RECIPE}
            with open(RECIPE, encoding="utf-8") as file:
                exec(compile(file.read(), RECIPE, "exec"), scope)  # pylint: disable=exec-used
        finally:
            for each, module in before.items():
                if module is None:
                    del sys.modules[each]
                else:
                    sys.modules[each] = module
        self.kind = scope["Lockflight"]

    def options(self, mpi, programs, variants):
        """As `spack install` gives them, for an MPI whose programs lie in a folder."""
        chosen = {**self.variants, **variants}
        unknown = set(variants) - set(self.variants)
        if unknown:
            raise KeyError(f"no variants {unknown}")
        return self.kind(Spec(chosen, mpi, programs)).cmake_args()


class Spec:
    def __init__(self, variants, mpi, programs):
        self.variants = variants
        self.name = mpi
        self.prefix = types.SimpleNamespace(bin=programs)

    def satisfies(self, condition):
        return self.variants[condition.lstrip("+")]

    def __getitem__(self, name):
        return self


class Package:
    def __init__(self, spec):
        self.spec = spec

    @staticmethod
    def define(name, value):
        if isinstance(value, bool):
            return f"-D{name}:BOOL={'ON' if value else 'OFF'}"
        return f"-D{name}:STRING={value}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.spec.variants[variant])
